// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/exact.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <new>
#include <optional>
#include <system_error>

#include "plan/pack/exact/search.h"

namespace berth::internal::plan {

namespace pack::exact {

namespace {

constexpr std::uint64_t kMostSteps = 1 << 16;
constexpr std::uint64_t kMostAimed = 1 << 19;  // steps at the bound, before most steps go to lowering
constexpr std::uint64_t kFirstBudget = 1500;
constexpr std::size_t kRoundsOfABudget = 12;  // many short runs find more than a few long ones

// What the threads that search one part share: the lowest peak, and the end.
class Race {
 public:
  // Relaxed: the number publishes no other data.
  Units lowest() const noexcept { return lowest_.load(std::memory_order_relaxed); }

  void found(Units peak) noexcept {
    Units known = lowest();
    while (peak < known && !lowest_.compare_exchange_weak(known, peak, std::memory_order_relaxed)) {
    }
  }

  // Stops all threads.
  void end() noexcept { over_.request_stop(); }
  std::stop_token over() const noexcept { return over_.get_token(); }

 private:
  std::atomic<Units> lowest_ = kNowhere;
  std::stop_source over_;
};

// The restart schedule: turns of two choices of the next item and three rankings, first exact and then with noise, for
// each measure of width. After every kRoundsOfABudget rounds the step limit grows. The run time has a heavy tail: what
// one way does not find in an hour, another finds at once.
class Rounds {
 public:
  Rounds(const Rules& rules, Pick first, std::size_t round, std::uint64_t seed)
      : rules_(rules), first_(first), round_(round), random_(seed) {}

  // A step that counts candidates takes twice as long: both choices have the same time.
  std::uint64_t budget() const noexcept { return pick() == Pick::fewest ? budget_ / 2 : budget_; }

  void choose(Search& search) {
    constexpr RankBy kRanks[] = {RankBy::twa, RankBy::taw, RankBy::wat};
    search.choose(pick());
    search.ranking().choose(kRanks[round_ / 2 % 3], round_ / 12 % kWidths, round_ / 6 % 2 == 1, random_);
  }

  void next() {
    if (++round_ % kRoundsOfABudget == 0) budget_ = budget_ * 13 / 10;
  }

 private:
  Pick pick() const noexcept {
    if (!rules_.fewest) return Pick::lowest;
    return (round_ % 2 == 0) == (first_ == Pick::fewest) ? Pick::fewest : Pick::lowest;
  }

  const Rules& rules_;
  const Pick first_;
  std::size_t round_;
  std::uint64_t budget_ = kFirstBudget;
  Random random_;
};

// Lowers the best packing one unit at a time, and in between tries to reach the target at once.
class Restarts {
 public:
  // Each thread starts elsewhere in the schedule.
  Restarts(const PackTask& task, const Instance& instance, const Rules& rules, Race& race, std::size_t thread)
      : task_(task),
        instance_(instance),
        rules_(rules),
        race_(race),
        patience_(task.patience.unless(race.over())),
        search_(instance, rules, patience_),
        rounds_(rules, Pick::lowest, 6 * thread, task.seed + thread),
        aim_rounds_(rules, Pick::fewest, 6 * thread, ~(task.seed + thread)),
        enough_(in_units(std::max(task.part.lower_bound_bytes, task.enough))) {}

  PackAnswer run() {
    PackAnswer answer{PackEnd::above};
    const std::size_t most = std::min(std::max<std::size_t>(task_.below, 1) - 1, task_.capacity);
    capacity_ = in_units(most);
    if (task_.below == 0 || capacity_ < instance_.lower_bound) return answer;
    aim(answer, task_.patience.has_deadline() ? 2 * kMostSteps : kMostSteps / 4 / task_.sharing);
    while (true) {
      capacity_ = std::min(capacity_, race_.lowest() - 1);
      if (capacity_ < enough_) {
        race_.end();
        return answer;
      }
      rounds_.choose(search_);
      const Verdict verdict = search_.run(capacity_, left(rounds_.budget()));
      if (verdict == Verdict::none) {
        prove(answer, capacity_ + 1);
        race_.end();
        return answer;
      }
      if (verdict == Verdict::found) {
        keep(search_, answer);
        continue;  // keep the ranking that succeeded
      }
      if (patience_.over()) return ended(std::move(answer), PackEnd::out_of_time);
      if (left(1) == 0) return ended(std::move(answer), PackEnd::gave_up);
      rounds_.next();
      aim(answer, left(rounds_.budget()) / (task_.patience.has_deadline() && aimed_ < kMostAimed ? 1 : 8));
    }
  }

 private:
  // Clamped: larger capacities make no difference.
  Units in_units(std::size_t bytes) const { return static_cast<Units>(std::min<std::size_t>(bytes / instance_.unit_bytes, kNowhere / 2)); }

  // Searches at the target. At the lower bound no byte may be wasted, which prunes hard: it is often reached
  // sooner than a peak slightly below the best. When it is proved infeasible, the bound rises.
  void aim(PackAnswer& answer, std::uint64_t steps) {
    constexpr std::uint64_t kLeastSteps = 256;  // the cost of a run without a step
    for (steps += aimed_; aimed_ < steps && enough_ < capacity_ && !patience_.over();) {
      if (!aim_) aim_.emplace(instance_, rules_, patience_);
      aim_rounds_.choose(*aim_);
      const std::uint64_t before = aim_->steps();
      const Verdict verdict = aim_->run(enough_, std::min(aim_rounds_.budget(), steps - aimed_));
      aimed_ += std::max(aim_->steps() - before, kLeastSteps);
      if (verdict == Verdict::found) return keep(*aim_, answer);
      if (verdict == Verdict::none) {
        prove(answer, ++enough_);
        aim_.reset();  // no-goods of a smaller capacity are not valid for a larger one
      } else {
        aim_rounds_.next();
      }
    }
  }

  std::uint64_t left(std::uint64_t wanted) const {
    if (task_.patience.has_deadline()) return wanted;
    const std::uint64_t most = kMostSteps / task_.sharing;
    return std::min(wanted, most - std::min(most, search_.steps()));
  }

  static PackAnswer ended(PackAnswer answer, PackEnd end) {
    if (answer.end != PackEnd::done) answer.end = end;
    return answer;
  }

  void prove(PackAnswer& answer, Units least) const { answer.proved_bytes = static_cast<std::size_t>(least) * instance_.unit_bytes; }

  void keep(const Search& search, PackAnswer& answer) {
    answer.end = PackEnd::done;
    answer.packing.peak_bytes = 0;
    answer.packing.offsets.resize(instance_.buffers.size());
    for (std::size_t i = 0; i < instance_.buffers.size(); ++i) {
      answer.packing.offsets[i] = static_cast<std::size_t>(search.offsets()[i]) * instance_.unit_bytes;
      answer.packing.peak_bytes = std::max(answer.packing.peak_bytes, answer.packing.offsets[i] + task_.part.buffers[i].bytes);
    }
    capacity_ = static_cast<Units>(answer.packing.peak_bytes / instance_.unit_bytes) - 1;
    race_.found(capacity_ + 1);
  }

  const PackTask& task_;
  const Instance& instance_;
  const Rules& rules_;
  Race& race_;
  const Patience patience_;
  Search search_;              // with falling capacities below the best
  std::optional<Search> aim_;  // with the capacity `enough_`
  Rounds rounds_;
  Rounds aim_rounds_;
  std::uint64_t aimed_ = 0;  // steps
  Units enough_;             // the target: nothing lower is wanted, or possible
  Units capacity_ = 0;       // one less than the best
};

class EndOfRace {
 public:
  explicit EndOfRace(Race& race) noexcept : race_(race), exceptions_(std::uncaught_exceptions()) {}
  ~EndOfRace() {
    if (std::uncaught_exceptions() > exceptions_) race_.end();
  }
  EndOfRace(const EndOfRace&) = delete;
  EndOfRace& operator=(const EndOfRace&) = delete;

 private:
  Race& race_;
  const int exceptions_;
};

// The lowest packing, and the highest proved bound.
PackAnswer best_of(PackAnswer one, PackAnswer other) {
  const std::size_t proved = std::max(one.proved_bytes, other.proved_bytes);
  const auto peak_of = [](const PackAnswer& answer) { return answer.end == PackEnd::done ? answer.packing.peak_bytes : SIZE_MAX; };
  PackAnswer best = peak_of(other) < peak_of(one) ? std::move(other) : std::move(one);
  if (best.end != PackEnd::done && other.end == PackEnd::above) best.end = PackEnd::above;
  best.proved_bytes = proved;
  return best;
}

}  // namespace

}  // namespace pack::exact

PackAnswer pack_exact(const PackTask& task, const pack::exact::Rules& rules) {
  const std::optional<pack::exact::Instance> instance = pack::exact::make_instance(task.part);
  if (!instance) return {PackEnd::too_many};
  pack::exact::Race race;
  const auto search = [&](std::size_t thread) { return pack::exact::Restarts(task, *instance, rules, race, thread).run(); };
  const auto help = [&](std::size_t thread) {
    try {
      return search(thread);
    } catch (const std::bad_alloc&) {  // the first thread goes on and has the answer
      return PackAnswer{PackEnd::gave_up};
    }
  };
  std::vector<std::future<PackAnswer>> others;
  const pack::exact::EndOfRace end(race);  // stops the others before they are joined, when this thread throws
  try {
    for (std::size_t thread = 1; thread < task.threads; ++thread) others.push_back(std::async(std::launch::async, help, thread));
  } catch (const std::system_error&) {  // go on with fewer threads
  }
  PackAnswer answer = search(0);
  for (std::future<PackAnswer>& other : others) answer = pack::exact::best_of(std::move(answer), other.get());
  return answer;
}

}  // namespace berth::internal::plan

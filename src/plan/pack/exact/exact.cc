// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/exact.h"

#include <algorithm>

#include "plan/pack/exact/search.h"

namespace berth::planning {

namespace exact {

namespace {

constexpr std::uint64_t kMostSteps = 1 << 16;
constexpr std::uint64_t kFirstBudget = 1500;

// One round after another: three ways to rank, first as they are and then with noise, for each measure of width; then all of it again with a
// larger budget. The search has a long tail: what one order does not find in an hour another finds at once.
class Restarts {
 public:
  Restarts(const PackTask& task, const Instance& instance, const Rules& rules)
      : task_(task), instance_(instance), search_(instance, rules, task.patience), random_(task.seed) {}

  PackAnswer run() {
    PackAnswer answer{PackEnd::above};
    const auto enough = static_cast<Units>(std::max(task_.part.lower_bound_bytes, task_.enough) / instance_.unit_bytes);
    const std::size_t most = std::min(std::max<std::size_t>(task_.below, 1) - 1, task_.capacity);
    auto capacity = static_cast<Units>(std::min<std::size_t>(most / instance_.unit_bytes, kNowhere / 2));
    if (task_.below == 0 || capacity < instance_.lower_bound || capacity < enough) return answer;
    while (true) {
      choose();
      const Verdict verdict = search_.run(capacity, left(budget_));
      if (verdict == Verdict::none) {
        answer.proved_bytes = (static_cast<std::size_t>(capacity) + 1) * instance_.unit_bytes;
        return answer;
      }
      if (verdict == Verdict::found) {
        keep(answer);
        capacity = static_cast<Units>(answer.packing.peak_bytes / instance_.unit_bytes) - 1;
        if (capacity < enough) return answer;
        continue;  // in the same order: it was a lucky one
      }
      if (task_.patience.over()) return ended(std::move(answer), PackEnd::out_of_time);
      if (left(1) == 0) return ended(std::move(answer), PackEnd::gave_up);
      next_round();
    }
  }

 private:
  std::uint64_t left(std::uint64_t wanted) const {
    if (task_.patience.has_deadline()) return wanted;
    return std::min(wanted, kMostSteps - std::min(kMostSteps, search_.steps()));
  }

  static PackAnswer ended(PackAnswer answer, PackEnd end) {
    if (answer.end != PackEnd::done) answer.end = end;
    return answer;
  }

  void choose() {
    constexpr RankBy kRanks[] = {RankBy::twa, RankBy::taw, RankBy::wat};
    search_.ranking().choose(kRanks[round_ % 3], round_ / 6 % kWidths, round_ / 3 % 2 == 1, random_);
  }

  void next_round() {
    if (++round_ % 6 == 0) budget_ = budget_ * 8 / 5;
  }

  void keep(PackAnswer& answer) const {
    answer.end = PackEnd::done;
    answer.packing.peak_bytes = 0;
    answer.packing.offsets.resize(instance_.buffers.size());
    for (std::size_t i = 0; i < instance_.buffers.size(); ++i) {
      answer.packing.offsets[i] = static_cast<std::size_t>(search_.offsets()[i]) * instance_.unit_bytes;
      answer.packing.peak_bytes = std::max(answer.packing.peak_bytes, answer.packing.offsets[i] + task_.part.buffers[i].bytes);
    }
  }

  const PackTask& task_;
  const Instance& instance_;
  Search search_;
  Random random_;
  std::size_t round_ = 0;
  std::uint64_t budget_ = kFirstBudget;
};

}  // namespace

}  // namespace exact

PackAnswer pack_exact(const PackTask& task, const exact::Rules& rules) {
  const std::optional<exact::Instance> instance = exact::make_instance(task.part);
  if (!instance) return {PackEnd::too_many};
  return exact::Restarts(task, *instance, rules).run();
}

}  // namespace berth::planning

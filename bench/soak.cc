// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "memories.h"
#include "os/memory/mappings.h"
#include "os/system.h"

// A pool under everything at once, for a time that is given:
//
//     bench/soak [--seconds N] [--threads N] [--limit-mib N]
//
// Threads that come and go allocate and free blocks of 64 B to 64 MiB, hand some to one another, and write and
// verify the first and last bytes of each; meanwhile the process forks, trims, takes snapshots and is refused
// at its limit. Prints one JSON object: operations, refusals by reason, wrong bytes, the worst call in CPU time
// of its thread and on the wall, the worst trim or report, the latest wake-up of a thread that only sleeps,
// resident memory by committed memory, and mappings. Exits with 1 when a byte was wrong, or an audit found
// something.
//
// On a virtual machine a thread's CPU time goes on while the host runs something else on its processor, so a
// thread that calls nothing sees jumps of tens of milliseconds. The kernel counts that time as stolen, for all
// threads together: the worst call is given with what was stolen around it, and so is the worst call around
// which nothing was.
namespace {

using namespace berth;
using namespace berth::bench;
using namespace berth::internal;

struct Call {
  std::string_view name;
  std::size_t bytes = 0;  // of the block, if it has one
  double cpu_ms = 0;
  double wall_ms = 0;
  double ended_ms = 0;
};

// The slowest calls.
struct Worst {
  static constexpr double kLongMs = 2;

  Call cpu;
  Call wall;
  std::vector<Call> long_ones;  // of kLongMs of CPU time or more

  void add(const Call& call) {
    if (call.cpu_ms > cpu.cpu_ms) cpu = call;
    if (call.wall_ms > wall.wall_ms) wall = call;
    if (call.cpu_ms >= kLongMs) long_ones.push_back(call);
  }
  void merge(const Worst& other) {
    if (other.cpu.cpu_ms > cpu.cpu_ms) cpu = other.cpu;
    if (other.wall.wall_ms > wall.wall_ms) wall = other.wall;
    long_ones.insert(long_ones.end(), other.long_ones.begin(), other.long_ones.end());
  }
};

// The time for which the host ran something else on this machine's processors, as the kernel counts it. One
// thread calls sample().
class Stolen {
 public:
  void sample() {
    const double before_ms = now_ns() / 1e6;
    const double total = total_ms();
    if (!spans_.empty() && total == spans_.back().total_ms)
      spans_.back().last_ms = before_ms;
    else
      spans_.push_back({before_ms, before_ms, total});
  }

  // What was stolen around a call, on any processor, at most: between the samples before it and after it, however late
  // they are. The kernel notices up to a tick late and counts in hundredths of a second.
  double around_ms(const Call& call) const {
    constexpr double kLateMs = 25;
    return total_from(call.ended_ms + kLateMs) - total_until(call.ended_ms - call.wall_ms - kLateMs);
  }

 private:
  // Samples, one after the other, of one total.
  struct Span {
    double first_ms;
    double last_ms;
    double total_ms;
  };

  // The eighth figure of the first line of /proc/stat, in ticks; 0 where there is none.
  static double total_ms() {
    std::ifstream stat("/proc/stat");
    std::string name;
    std::uint64_t ticks = 0;
    stat >> name;
    for (int i = 0; i < 8; ++i) stat >> ticks;
    return stat ? static_cast<double>(ticks) * 1e3 / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
  }

  // At the last sample until then.
  double total_until(double ms) const {
    const auto after = std::ranges::upper_bound(spans_, ms, {}, &Span::first_ms);
    return after == spans_.begin() ? 0 : std::prev(after)->total_ms;
  }

  // At the first sample from then on.
  double total_from(double ms) const {
    const auto at = std::ranges::lower_bound(spans_, ms, {}, &Span::last_ms);
    return at == spans_.end() ? total_ms() : at->total_ms;
  }

  std::vector<Span> spans_;
};

class Soak {
 public:
  Soak(std::chrono::seconds time, int threads, std::size_t limit_bytes)
      : until_(Clock::now() + time), threads_(threads), limit_bytes_(limit_bytes), pool_(pool("cpu", {.limit_bytes = limit_bytes})) {}

  void run() {
    std::vector<std::jthread> always;
    always.emplace_back([this] { sleep_only(); });
    always.emplace_back([this] { disturb(); });
    always.emplace_back([this] { fork_now_and_then(); });
    std::vector<std::jthread> workers(static_cast<std::size_t>(threads_));
    for (std::uint64_t seed = 1; Clock::now() < until_; ++seed) {
      std::jthread& worker = workers[seed % workers.size()];
      worker = std::jthread([this, seed] { work(seed); });  // waits for the one before
    }
    workers.clear();
    always.clear();
    for (Kept& kept : shared_) drop(kept, totals_);
    note_audit("at the end");
  }

  bool is_sound() const { return totals_.wrong_bytes == 0 && audits_.empty(); }

  void write(JsonWriter& json) {
    json.member("operations", totals_.operations).member("threads_made", totals_.threads).member("forks", forks_.load());
    json.key("refusals").begin_object();
    for (const auto& [why, count] : totals_.refusals) json.member(why, count);
    json.end_object();
    json.member("wrong_bytes", totals_.wrong_bytes).member("audit", audits_.empty() ? "" : audits_.front());
    const Worst& worst = totals_.worst;
    Call undisturbed;
    for (const Call& call : worst.long_ones)
      if (call.cpu_ms > undisturbed.cpu_ms && stolen_.around_ms(call) == 0) undisturbed = call;
    json.member("worst_cpu_ms", worst.cpu.cpu_ms).member("worst_cpu_call", worst.cpu.name).member("worst_cpu_bytes", worst.cpu.bytes);
    json.member("stolen_around_worst_cpu_ms", stolen_.around_ms(worst.cpu)).member("worst_cpu_ms_nothing_stolen", undisturbed.cpu_ms);
    json.member("worst_cpu_call_nothing_stolen", undisturbed.name).member("worst_cpu_bytes_nothing_stolen", undisturbed.bytes);
    json.member("worst_wall_ms", worst.wall.wall_ms).member("worst_wall_call", worst.wall.name);
    json.member("worst_report_cpu_ms", worst_report_.cpu.cpu_ms).member("worst_report_cpu_call", worst_report_.cpu.name);
    json.member("worst_sleeper_ms", worst_sleeper_ms_);
    json.member("most_resident_by_committed", most_resident_ratio_).member("most_mappings", most_mappings_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  // A block with bytes that can be verified.
  struct Kept {
    Block block{};
    std::uint64_t word = 0;
  };
  struct Totals {
    std::uint64_t operations = 0;
    std::uint64_t threads = 0;
    std::uint64_t wrong_bytes = 0;
    std::map<std::string, std::uint64_t> refusals;
    Worst worst;
  };

  template <class Call>
  static auto timed(std::string_view name, Totals& totals, Call call, std::size_t bytes = 0) {
    struct Note {
      ~Note() {
        const double ended = now_ns();
        totals.worst.add({name, bytes, (thread_cpu_ns() - cpu) / 1e6, (ended - wall) / 1e6, ended / 1e6});
      }
      std::string_view name;
      std::size_t bytes;
      Totals& totals;
      double cpu = thread_cpu_ns();
      double wall = now_ns();
    } const note{name, bytes, totals};
    ++totals.operations;
    return call();
  }

  void take(std::size_t bytes, std::uint64_t word, Kept& into, Totals& totals) {
    try {
      into = {timed(
                  "allocate", totals, [&] { return pool_->allocate({.bytes = bytes}); }, bytes),
              word};
    } catch (const OutOfMemory& refused) {
      ++totals.refusals[refused.report().refused_by];
      return;
    }
    auto* const data = static_cast<std::byte*>(into.block.data);
    std::memcpy(data, &word, sizeof word);
    std::memcpy(data + bytes - sizeof word, &word, sizeof word);
  }

  void drop(Kept& kept, Totals& totals) {
    if (kept.block.data == nullptr) return;
    const auto* const data = static_cast<const std::byte*>(kept.block.data);
    totals.wrong_bytes += std::memcmp(data, &kept.word, sizeof kept.word) == 0 ? 0 : 1;
    totals.wrong_bytes += std::memcmp(data + kept.block.bytes - sizeof kept.word, &kept.word, sizeof kept.word) == 0 ? 0 : 1;
    timed(
        "deallocate", totals, [&] { pool_->deallocate(kept.block); }, kept.block.bytes);
    kept = {};
  }

  // A thread of some thousand operations.
  void work(std::uint64_t seed) {
    Chance chance(seed);
    Totals totals;
    std::vector<Kept> mine(64);
    const Sizes sizes = seed % 4 == 0 ? Sizes{64_KiB, 64_MiB} : Sizes{64, 256_KiB};
    const std::size_t operations = 2000 + chance.below(20'000);
    for (std::size_t i = 0; i < operations && Clock::now() < until_; ++i) {
      Kept& kept = mine[chance.below(mine.size())];
      drop(kept, totals);
      take(std::max<std::size_t>(chance.size(sizes), 16), seed << 32 | i, kept, totals);
      if (i % 16 == 0) exchange(kept, chance.below(shared_.size()));
    }
    for (Kept& kept : mine) drop(kept, totals);
    const std::lock_guard lock(guard_);
    totals_.operations += totals.operations;
    totals_.wrong_bytes += totals.wrong_bytes;
    totals_.worst.merge(totals.worst);
    for (const auto& [why, count] : totals.refusals) totals_.refusals[why] += count;
    ++totals_.threads;
  }

  void exchange(Kept& kept, std::size_t place) {
    const std::lock_guard lock(guard_);
    std::swap(kept, shared_[place]);
  }

  // Trims, snapshots and reports.
  void disturb() {
    Totals totals;
    for (std::uint64_t round = 0; Clock::now() < until_; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      switch (round % 6) {
        case 0: timed("trim", totals, [&] { pool_->trim(limit_bytes_ / 4); }); break;
        case 1: timed("snapshot", totals, [&] { (void)pool_->snapshot(); }); break;
        case 2: timed("trim_idle", totals, [&] { pool_->trim_idle(); }); break;
        case 3: timed("holders", totals, [&] { (void)pool_->holders(); }); break;
        case 4: timed("release_cached", totals, [&] { pool_->release_cached(); }); break;
        default: timed("stats", totals, [&] { (void)pool_->stats(); });
      }
      if (round % 50 == 0) measure();
    }
    const std::lock_guard lock(guard_);
    totals_.operations += totals.operations;
    worst_report_ = totals.worst;
  }

  void measure() {
    const std::span<const std::byte> range = pool_->range();
    const std::size_t resident = os::resident_bytes(range.data(), range.size()).value_or(0);
    const Stats stats = pool_->stats();
    if (stats.committed_bytes > 64_MiB)
      most_resident_ratio_ = std::max(most_resident_ratio_, static_cast<double>(resident) / static_cast<double>(stats.committed_bytes));
    most_mappings_ = std::max(most_mappings_, os::count_mappings());
    note_audit("meanwhile");
  }

  void note_audit(std::string_view when) {
    std::string found = pool_->audit();
    const std::lock_guard lock(guard_);
    if (!found.empty()) audits_.push_back(std::move(found) + ", " + std::string(when));
  }

  void fork_now_and_then() {
    while (Clock::now() < until_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      const pid_t child = fork();
      if (child == 0) {
        alarm(30);
        const bool sound = pool_->audit().empty();
        const std::optional<Block> block = pool_->try_allocate({.bytes = 1_MiB});
        if (block) pool_->deallocate(*block);
        _exit(sound && pool_->audit().empty() ? 0 : 1);
      }
      int status = 1;
      if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        const std::lock_guard lock(guard_);
        audits_.emplace_back("in a forked child");
      }
      ++forks_;
    }
  }

  // What the machine itself does to a thread.
  void sleep_only() {
    while (Clock::now() < until_) {
      const double before = now_ns();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      worst_sleeper_ms_ = std::max(worst_sleeper_ms_, (now_ns() - before) / 1e6 - 1);
      stolen_.sample();
    }
  }

  const Clock::time_point until_;
  const int threads_;
  const std::size_t limit_bytes_;
  const std::shared_ptr<Allocator> pool_;
  std::mutex guard_;
  std::array<Kept, 64> shared_{};
  Totals totals_;
  std::vector<std::string> audits_;
  std::atomic<std::uint64_t> forks_{0};
  Stolen stolen_;
  Worst worst_report_;  // of trims, snapshots and other calls about all of the pool
  double worst_sleeper_ms_ = 0;
  double most_resident_ratio_ = 0;
  std::size_t most_mappings_ = 0;
};

bool read_number(int argc, char** argv, int& at, std::string_view name, std::size_t& value) {
  if (argv[at] != name || at + 1 >= argc) return false;
  const std::string_view text = argv[++at];
  return std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size() && value > 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t seconds = 60;
  std::size_t threads = 8;
  std::size_t limit_mib = 1024;
  for (int i = 1; i < argc; ++i) {
    if (!read_number(argc, argv, i, "--seconds", seconds) && !read_number(argc, argv, i, "--threads", threads) &&
        !read_number(argc, argv, i, "--limit-mib", limit_mib)) {
      std::cerr << "usage: soak [--seconds N] [--threads N] [--limit-mib N]\n";
      return 2;
    }
  }
  Soak soak(std::chrono::seconds(seconds), static_cast<int>(threads), limit_mib * 1_MiB);
  soak.run();
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object();
  soak.write(json);
  json.end_object();
  std::cout << json.take() << '\n';
  return soak.is_sound() ? 0 : 1;
}

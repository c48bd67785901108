// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "berth/berth.h"
#include "berth/observe.h"
#include "observe/replay_loop.h"
#include "os/ticks.h"

// The cost of observing: bench_observe [--trace FILE] [--rounds N] [--blocks N]. FILE is an uncompressed text
// trace; without one, that part is skipped. Everything is a ratio of two measurements that take turns, medians
// of rounds. Prints one JSON object.
namespace {

using namespace berth;
using namespace berth::internal;
using namespace berth::internal::observe;

// The CPU time of this thread: nothing that is timed waits or uses other threads, and other processes are not
// included.
double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double part_of(std::vector<double> values, std::size_t part) {
  std::ranges::sort(values);
  return values[values.size() / part];
}
double median(std::vector<double> values) { return part_of(std::move(values), 2); }
// When other processes use the machine, most rounds are slowed down: then the lower quartile is the better
// estimate.
double lower_quartile(std::vector<double> values) { return part_of(std::move(values), 4); }

// Like a program that tags its allocations: three scopes around every call.
class TaggedPlayer {
 public:
  TaggedPlayer(Allocator& allocator, const ReplayScript& script, std::span<const Stream> streams) : player_(allocator, script, streams) {}

  void* take(const ReplayStep& step) {
    const TagScope model(kModel);
    const TagScope layer(kLayer);
    const TagScope part(kPart);
    return player_.take(step);
  }
  void drop(const ReplayStep& step) noexcept {
    const TagScope model(kModel);
    const TagScope layer(kLayer);
    const TagScope part(kPart);
    player_.drop(step);
  }

 private:
  inline static const Tag kModel = "model";
  inline static const Tag kLayer = "layer";
  inline static const Tag kPart = "part";
  BlockPlayer player_;
};

template <class Player>
double replay_ms(const ReplayScript& script) {
  const auto memory = pool("cpu");
  const std::vector<Stream> none(script.streams + std::size_t{1});
  Performance<Player> performance(script, *memory, script, none);
  const double start = thread_ms();
  performance.template run<true>();
  return thread_ms() - start;
}

void measure_counters(const std::string& path, int rounds) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const ReplayScript script = plan_replay(read_trace(text, path).events);
  enum Arm : std::size_t { plain, tagged, counted, observed, kArms };
  std::vector<double> times[kArms];
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kArms; ++i) {
      // Each round starts with another arm, since each arm inherits the caches of the previous one.
      const std::size_t arm = (i + static_cast<std::size_t>(round)) % kArms;
      std::optional<Profiler> profiler;
      if (arm == counted || arm == observed) profiler.emplace();
      times[arm].push_back(arm == plain || arm == counted ? replay_ms<BlockPlayer>(script) : replay_ms<TaggedPlayer>(script));
    }
  }
  const auto cost = [&](Arm arm) { return 100 * (median(times[arm]) / median(times[plain]) - 1); };
  const auto least_cost = [&](Arm arm) { return 100 * (lower_quartile(times[arm]) / lower_quartile(times[plain]) - 1); };
  std::printf("\"replay_plain_ms\": %.1f, \"tags_percent\": %.2f, \"counters_percent\": %.2f, \"tags_and_counters_percent\": %.2f, ",
              median(times[plain]), cost(tagged), cost(counted), cost(observed));
  std::printf(
      "\"quartile\": {\"replay_plain_ms\": %.1f, \"tags_percent\": %.2f, \"counters_percent\": %.2f, \"tags_and_counters_percent\": "
      "%.2f}, ",
      lower_quartile(times[plain]), least_cost(tagged), least_cost(counted), least_cost(observed));
}

std::size_t any_size(Random& random) {
  const std::uint64_t kind = random.below(100);
  return 1 + random.below(kind < 90 ? 4096 : 65'536);
}

// Replaces random blocks of a large set, so that all of the pool is used, and records the time of each pair of
// calls.
std::vector<std::uint64_t> churn(Allocator& memory, std::vector<Block>& live, std::uint64_t seed, std::uint64_t count) {
  Random random(seed);
  std::vector<std::uint64_t> took(count);
  for (std::uint64_t& one : took) {
    Block& block = live[random.below(live.size())];
    const std::size_t bytes = any_size(random);
    const std::uint64_t before = os::ticks_in_order();
    memory.deallocate(block);
    block = memory.allocate({.bytes = bytes});
    one = os::ticks_in_order() - before;
  }
  return took;
}

double p999(std::vector<std::uint64_t> took) {
  std::ranges::sort(took);
  return static_cast<double>(took[took.size() * 999 / 1000]);
}

void measure_snapshot(std::size_t blocks, int rounds) {
  const auto memory = pool("cpu");
  Random random(1);
  std::vector<Block> live;
  for (std::size_t i = 0; i < blocks; ++i)
    live.push_back(memory->allocate({.bytes = any_size(random), .tag = i % 3 == 0 ? "kv" : "weights"}));
  std::vector<double> pairs;
  std::vector<double> bare_pairs;
  std::vector<double> snapshots;
  std::vector<double> alone;
  std::vector<double> meanwhile;
  bool sound = true;
  for (int i = 0; i < rounds; ++i) {
    double start = thread_ms();
    (void)churn(*memory, live, static_cast<std::uint64_t>(i), 100'000);
    pairs.push_back(thread_ms() - start);
    start = thread_ms();
    for (int n = 0; n < 100'000; ++n) memory->deallocate(memory->allocate({.bytes = 4096}));
    bare_pairs.push_back(thread_ms() - start);
    start = thread_ms();
    const Snapshot snapshot = memory->snapshot();
    snapshots.push_back(thread_ms() - start);
    sound = sound && snapshot.audit().empty() && snapshot.figures.live_blocks == blocks && memory->audit().empty();
    alone.push_back(p999(churn(*memory, live, static_cast<std::uint64_t>(i) + 77, 400'000)));
    std::atomic<bool> stop{false};
    std::uint64_t taken = 0;
    std::thread other([&] {
      while (!stop) {
        sound = sound && memory->snapshot().audit().empty();
        ++taken;
      }
    });
    meanwhile.push_back(p999(churn(*memory, live, static_cast<std::uint64_t>(i) + 77, 400'000)));
    stop = true;
    other.join();
  }
  std::printf(
      "\"blocks\": %zu, \"pairs_ms\": %.3f, \"warm_4k_pairs_ms\": %.3f, \"snapshot_ms\": %.3f, \"snapshot_by_pairs\": %.2f, "
      "\"snapshot_by_warm_4k_pairs\": %.2f, \"p999_alone_ticks\": %.0f, \"p999_meanwhile_ticks\": %.0f, \"p999_ratio\": %.2f, \"sound\": "
      "%s",
      blocks, median(pairs), median(bare_pairs), median(snapshots), median(snapshots) / median(pairs),
      median(snapshots) / median(bare_pairs), median(alone), median(meanwhile), median(meanwhile) / median(alone),
      sound ? "true" : "false");
  for (const Block& block : live) memory->deallocate(block);
}

}  // namespace

int main(int argc, char** argv) {
  std::string trace;
  int rounds = 5;
  std::size_t blocks = 100'000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--trace") trace = argv[i + 1];
    if (option == "--rounds") rounds = std::max(std::atoi(argv[i + 1]), 1);
    if (option == "--blocks") blocks = std::strtoull(argv[i + 1], nullptr, 10);
  }
  std::printf("{");
  if (!trace.empty()) measure_counters(trace, rounds);
  measure_snapshot(std::max<std::size_t>(blocks, 1), rounds);
  std::printf("}\n");
  return 0;
}

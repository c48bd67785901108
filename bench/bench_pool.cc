// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <latch>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "memories.h"
#include "os/ticks.h"

// The cost of the pool's calls, in loops that are the same for the C library's malloc, or for an allocator
// preloaded in its place:
//
//     bench_pool [--strategy pool|malloc] [--only FIGURE]... [--quick]
//
// prints one JSON object. bench/pool-peers runs it for all peers and compares. Linked with the shared library,
// as users link it, and used through the public interface. Nothing is written into the blocks. --quick divides
// the counts by a hundred, as a smoke test.
namespace {

using namespace berth;
using namespace berth::internal;
using namespace berth::bench;

// ---- Clocks and random numbers.

double measure_ns_per_tick() {
  const double begin = now_ns();
  const std::uint64_t first = os::ticks_in_order();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::uint64_t last = os::ticks_in_order();
  return (now_ns() - begin) / static_cast<double>(last - first);
}

// The time of reading the ticks twice, which is included in every measurement.
std::uint64_t measure_clock_ticks() {
  std::vector<std::uint64_t> costs(10001);
  for (std::uint64_t& cost : costs) {
    const std::uint64_t before = os::ticks_in_order();
    cost = os::ticks_in_order() - before;
  }
  std::ranges::nth_element(costs, costs.begin() + 5000);
  return costs[5000];
}

// ---- The measurements.

template <class Memory>
class Bench {
 public:
  using Handle = typename Memory::Handle;

  explicit Bench(std::size_t divide_by) : divide_by_(divide_by) {}

  // Allocates and frees repeatedly: the best round.
  double pair_ns(std::size_t bytes, std::size_t count) {
    return best_of([&] { return pairs_ns(bytes, scaled(count)); });
  }

  // The same on several threads concurrently, each with its own blocks: the slowest thread of the best round.
  double pair_together_ns(int threads, std::size_t bytes, std::size_t count) {
    return best_of([&] {
      std::vector<double> took(static_cast<std::size_t>(threads));
      std::latch ready(threads);
      {
        std::vector<std::jthread> running;
        for (double& mine : took) {
          running.emplace_back([&] {
            pairs_ns(bytes, 1000);
            ready.arrive_and_wait();
            mine = pairs_ns(bytes, scaled(count));
          });
        }
      }
      return *std::ranges::max_element(took);
    });
  }

  // One thread allocates what another frees: time per block, from the first to the last.
  double across_threads_ns(std::size_t bytes, std::size_t count) {
    return best_of([&] { return one_way_ns(bytes, scaled(count)); });
  }

  struct Tail {
    double p50 = 0;
    double p99 = 0;
    double p999 = 0;
  };

  // Single calls while `live` blocks are live: `burst` random ones are freed, then as many allocated. The
  // overhead of the clock is subtracted.
  Tail tail_ns(std::size_t live, Sizes sizes, std::size_t burst, std::size_t count) {
    std::vector<Handle> blocks = fill(live, sizes);
    std::vector<std::uint64_t> took;
    took.reserve(2 * scaled(count) + 2 * burst);
    churn(blocks, sizes, burst, 10 * blocks.size(), took);  // until the pool has reached its steady state
    took.clear();
    churn(blocks, sizes, burst, scaled(count), took);
    drop_all(blocks);
    return {at_share(took, 0.5), at_share(took, 0.99), at_share(took, 0.999)};
  }

  // One call, averaged over the best round, while `live` blocks are live: `batch` random ones are freed, then
  // as many allocated. The program's own table is read before the clock starts. With a batch of one, no latency
  // overlaps with the next call.
  double loaded_ns(std::size_t live, Sizes sizes, std::size_t batch, std::size_t count) {
    std::vector<Handle> blocks = fill(live, sizes);
    batches_ns(blocks, sizes, batch, blocks.size());
    const double best = best_of([&] { return batches_ns(blocks, sizes, batch, scaled(count)); });
    drop_all(blocks);
    return best;
  }

  double clock_ns() const noexcept { return static_cast<double>(clock_ticks_) * ns_per_tick_; }

 private:
  static constexpr int kRounds = 11;
  static constexpr std::size_t kMostBatch = 16;

  std::size_t scaled(std::size_t count) const noexcept { return std::max<std::size_t>(count / divide_by_, kMostBatch); }

  template <class Run>
  static double best_of(Run run) {
    double best = run();
    for (int round = 1; round < kRounds; ++round) best = std::min(best, run());
    return best;
  }

  double pairs_ns(std::size_t bytes, std::size_t count) {
    const double begin = now_ns();
    for (std::size_t i = 0; i < count; ++i) {
      const Handle handle = memory_.take(bytes);
      keep(Memory::address(handle));
      memory_.drop(handle);
    }
    return (now_ns() - begin) / static_cast<double>(count);
  }

  // A ring buffer with one writer and one reader. Each keeps its own count in its own cache line and reads the
  // other's only when it must.
  struct Ring {
    static constexpr std::size_t kEntries = 256;
    std::vector<Handle> entries = std::vector<Handle>(kEntries);
    alignas(128) std::atomic<std::size_t> written{0};
    alignas(128) std::atomic<std::size_t> read{0};
  };

  double one_way_ns(std::size_t bytes, std::size_t count) {
    Ring ring;
    std::latch ready(2);
    double end = 0;
    std::jthread reader([&] {
      ready.arrive_and_wait();
      std::size_t seen = 0;
      for (std::size_t i = 0; i < count; ++i) {
        // acquire: the handles below are visible.
        while (seen == i) seen = ring.written.load(std::memory_order_acquire);
        memory_.drop(ring.entries[i % Ring::kEntries]);
        ring.read.store(i + 1, std::memory_order_release);  // release: the element may be overwritten
      }
      end = now_ns();
    });
    ready.arrive_and_wait();
    const double begin = now_ns();
    std::size_t freed = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Handle handle = memory_.take(bytes);
      // acquire: the reader is done with the element.
      while (i - freed == Ring::kEntries) freed = ring.read.load(std::memory_order_acquire);
      ring.entries[i % Ring::kEntries] = handle;
      ring.written.store(i + 1, std::memory_order_release);  // release: publishes the handle
    }
    reader.join();
    return (end - begin) / static_cast<double>(count);
  }

  std::vector<Handle> fill(std::size_t live, Sizes sizes) {
    std::vector<Handle> blocks(scaled(live));
    for (Handle& block : blocks) block = memory_.take(chance_.size(sizes));
    return blocks;
  }

  void drop_all(std::vector<Handle>& blocks) {
    for (const Handle& block : blocks) memory_.drop(block);
    blocks.clear();
  }

  void churn(std::vector<Handle>& blocks, Sizes sizes, std::size_t burst, std::size_t count, std::vector<std::uint64_t>& took) {
    std::vector<std::size_t> victims(burst);
    for (std::size_t done = 0; done < count; done += burst) {
      for (std::size_t& victim : victims) {
        victim = choose(blocks);
        const Handle handle = blocks[victim];
        const std::uint64_t before = os::ticks_in_order();
        memory_.drop(handle);
        note(took, os::ticks_in_order() - before);
        blocks[victim] = Handle{};
      }
      for (const std::size_t victim : victims) {
        const std::size_t bytes = chance_.size(sizes);
        const std::uint64_t before = os::ticks_in_order();
        const Handle handle = memory_.take(bytes);
        note(took, os::ticks_in_order() - before);
        blocks[victim] = handle;
      }
    }
  }

  // The index of a random live block.
  std::size_t choose(const std::vector<Handle>& blocks) {
    std::size_t at = chance_.below(blocks.size());
    while (Memory::address(blocks[at]) == nullptr) at = chance_.below(blocks.size());
    return at;
  }

  static void note(std::vector<std::uint64_t>& took, std::uint64_t ticks) {
    if (took.size() < took.capacity()) took.push_back(ticks);
  }

  double batches_ns(std::vector<Handle>& blocks, Sizes sizes, std::size_t batch, std::size_t count) {
    std::uint64_t ticks = 0;
    std::size_t batches = 0;
    for (; batches * batch < count; ++batches) {
      std::size_t victims[kMostBatch];
      std::size_t bytes[kMostBatch];
      Handle handles[kMostBatch];
      for (std::size_t i = 0; i < batch; ++i) {
        victims[i] = choose(blocks);
        handles[i] = std::exchange(blocks[victims[i]], Handle{});
        bytes[i] = chance_.size(sizes);
        keep(&handles[i]);
      }
      const std::uint64_t before = os::ticks_in_order();
      for (std::size_t i = 0; i < batch; ++i) memory_.drop(handles[i]);
      for (std::size_t i = 0; i < batch; ++i) handles[i] = memory_.take(bytes[i]);
      const std::uint64_t took = os::ticks_in_order() - before;
      ticks += took - std::min(clock_ticks_, took);
      for (std::size_t i = 0; i < batch; ++i) blocks[victims[i]] = handles[i];
    }
    return static_cast<double>(ticks) * ns_per_tick_ / static_cast<double>(2 * batch * batches);
  }

  double at_share(std::vector<std::uint64_t>& took, double share) const {
    const auto place = took.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(took.size() - 1));
    std::ranges::nth_element(took, place);
    return static_cast<double>(*place - std::min(clock_ticks_, *place)) * ns_per_tick_;
  }

  const std::size_t divide_by_;
  const double ns_per_tick_ = measure_ns_per_tick();
  const std::uint64_t clock_ticks_ = measure_clock_ticks();
  Memory memory_;
  Chance chance_;
};

// ---- The figures, by name.

constexpr Sizes k4KiB{4_KiB, 4_KiB};
constexpr Sizes kMixed{64, 16_KiB};
constexpr Sizes kWide{64, 64_KiB};

template <class Memory>
void write_figures(const Command& command, JsonWriter& json) {
  Bench<Memory> bench(command.quick ? 100 : 1);
  json.member("strategy", command.strategy).member("clock_ns", bench.clock_ns());
  const auto figure = [&](const char* name, auto measure) {
    if (command.wants(name)) json.member(std::string(name) + "_ns", measure());
  };
  const auto tail = [&](const std::string& name, Sizes sizes, std::size_t burst) {
    if (!command.wants(name)) return;
    const auto took = bench.tail_ns(100'000, sizes, burst, 2'000'000);
    json.member(name + "_p50_ns", took.p50).member(name + "_p99_ns", took.p99).member(name + "_p999_ns", took.p999);
  };
  figure("pair_4k", [&] { return bench.pair_ns(4_KiB, 2'000'000); });
  figure("pair_4k_two_threads", [&] { return bench.pair_together_ns(2, 4_KiB, 2'000'000); });
  figure("across_threads_4k", [&] { return bench.across_threads_ns(4_KiB, 500'000); });
  figure("pair_8m", [&] { return bench.pair_ns(8_MiB, 50'000); });
  tail("tail_4k", k4KiB, 1);
  tail("tail_4k_bursts", k4KiB, 64);
  tail("tail_mixed", kMixed, 1);
  tail("tail_mixed_bursts", kMixed, 64);
  figure("live_10k", [&] { return bench.loaded_ns(10'000, kWide, 1, 200'000); });
  figure("live_10k_batches", [&] { return bench.loaded_ns(10'000, kWide, 16, 200'000); });
  figure("live_1m", [&] { return bench.loaded_ns(1'000'000, kWide, 1, 200'000); });
  figure("live_1m_batches", [&] { return bench.loaded_ns(1'000'000, kWide, 16, 200'000); });
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, "bench_pool", [](const Command& command, JsonWriter& json) {
    command.strategy == "pool" ? write_figures<PoolMemory>(command, json) : write_figures<MallocMemory>(command, json);
  });
}

// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <latch>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "memories.h"

// The pool under many threads, in loops that are the same for the C library's malloc, or for an allocator
// preloaded in its place:
//
//     bench_threads [--strategy pool|malloc] [--only FIGURE]... [--quick]
//
// prints one JSON object. bench/pool-peers compares it with peers. A pair's time is that of all threads
// together, so that it is the inverse of their rate; p999 is of single calls, by the clock on the wall. --quick
// divides times by twenty, as a smoke test.
namespace {

using namespace berth;
using namespace berth::bench;

struct Rate {
  double pair_ns = 0;
  double p999_ns = 0;
};

// Of a thread: every call is timed, and one in eight is kept.
class Calls {
 public:
  template <class Call>
  auto time(Call call) {
    if (++count_ % 8 != 0) return call();
    const double before = now_ns();
    struct Note {
      ~Note() { calls.took_.push_back(static_cast<float>(now_ns() - before)); }
      Calls& calls;
      double before;
    } const note{*this, before};
    return call();
  }
  std::uint64_t count() const noexcept { return count_; }
  const std::vector<float>& took() const noexcept { return took_; }

 private:
  std::uint64_t count_ = 0;
  std::vector<float> took_;
};

double at_share(std::vector<float>& took, double share) {
  if (took.empty()) return 0;
  const auto place = took.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(took.size() - 1));
  std::ranges::nth_element(took, place);
  return *place;
}

template <class Memory>
class Bench {
 public:
  using Handle = typename Memory::Handle;

  explicit Bench(std::chrono::milliseconds time) : time_(time) {}

  // Each thread keeps some blocks live, and replaces one after another.
  Rate replace(int threads, Sizes sizes) {
    return run(threads, [&](int thread, Calls& calls, const std::atomic<bool>& stop) {
      Chance chance(static_cast<std::uint64_t>(thread));
      std::array<Handle, 8> blocks{};
      for (Handle& block : blocks) block = memory_.take(chance.size(sizes));
      while (!stop.load(std::memory_order_relaxed)) {
        Handle& block = blocks[chance.below(blocks.size())];
        calls.time([&] { memory_.drop(block); });
        const std::size_t bytes = chance.size(sizes);
        calls.time([&] { block = memory_.take(bytes); });
        keep(Memory::address(block));
      }
      for (const Handle& block : blocks) memory_.drop(block);
    });
  }

  // Half of the threads allocate what the other half frees.
  Rate hand_over(int threads, Sizes sizes) {
    std::vector<Place> places(static_cast<std::size_t>(threads) / 2);
    const Rate rate = run(threads, [&](int thread, Calls& calls, const std::atomic<bool>& stop) {
      Place& place = places[static_cast<std::size_t>(thread) / 2];
      Chance chance(static_cast<std::uint64_t>(thread));
      while (!stop.load(std::memory_order_relaxed)) {
        if (thread % 2 == 0) {
          if (place.count() == Place::kRoom) {
            std::this_thread::yield();
            continue;
          }
          const std::size_t bytes = chance.size(sizes);
          Handle block{};
          calls.time([&] { block = memory_.take(bytes); });
          place.put(block);
        } else if (place.count() == 0) {
          std::this_thread::yield();
        } else {
          const Handle block = place.get();
          calls.time([&] { memory_.drop(block); });
        }
      }
    });
    for (Place& place : places) {
      while (place.count() > 0) memory_.drop(place.get());
    }
    return rate;
  }

 private:
  // Between one thread that puts and one that gets.
  class Place {
   public:
    static constexpr std::size_t kRoom = 64;
    std::size_t count() const { return put_.load(std::memory_order_acquire) - got_.load(std::memory_order_acquire); }
    void put(const Handle& block) {
      blocks_[put_.load(std::memory_order_relaxed) % kRoom] = block;
      put_.fetch_add(1, std::memory_order_release);
    }
    Handle get() {
      const Handle block = blocks_[got_.load(std::memory_order_relaxed) % kRoom];
      got_.fetch_add(1, std::memory_order_release);
      return block;
    }

   private:
    std::array<Handle, kRoom> blocks_{};
    std::atomic<std::size_t> put_{0};
    std::atomic<std::size_t> got_{0};
  };

  template <class Work>
  Rate run(int threads, Work work) {
    std::vector<Calls> calls(static_cast<std::size_t>(threads));
    std::atomic<bool> stop{false};
    std::latch ready(threads + 1);
    double took_ns = 0;
    {
      std::vector<std::jthread> running;
      for (int i = 0; i < threads; ++i) {
        running.emplace_back([&, i] {
          ready.arrive_and_wait();
          work(i, calls[static_cast<std::size_t>(i)], stop);
        });
      }
      ready.arrive_and_wait();
      const double begin = now_ns();
      std::this_thread::sleep_for(time_);
      stop = true;
      running.clear();
      took_ns = now_ns() - begin;
    }
    std::uint64_t count = 0;
    std::vector<float> took;
    for (const Calls& one : calls) {
      count += one.count();
      took.insert(took.end(), one.took().begin(), one.took().end());
    }
    return {took_ns / (static_cast<double>(count) / 2), at_share(took, 0.999)};
  }

  const std::chrono::milliseconds time_;
  Memory memory_;
};

// The CPU time of a pair on threads that turn from stream to stream, a hundred pairs on each.
double streams_ns(int threads, int rounds) {
  constexpr std::size_t kStreams = 64;
  constexpr int kPairs = 100;
  const auto memory = pool("cpu");
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < kStreams; ++i) streams.push_back(make_stream("cpu"));
  std::mutex guard;
  double all_ns = 0;
  std::latch ready(threads);
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&] {
        ready.arrive_and_wait();
        const double before = thread_cpu_ns();
        for (int round = 0; round < rounds; ++round) {
          for (const Stream& stream : streams) {
            for (int pair = 0; pair < kPairs; ++pair) memory->deallocate(memory->allocate({.bytes = 1000, .stream = stream}));
          }
        }
        const double mine = thread_cpu_ns() - before;
        const std::lock_guard lock(guard);
        all_ns += mine;
      });
    }
  }
  return all_ns / (static_cast<double>(threads) * rounds * kStreams * kPairs);
}

// ---- The figures, by name.

constexpr Sizes kLarge{140'000, 1'000'000};
constexpr Sizes kSmall{64, 16_KiB};

template <class Memory>
void write_figures(const Command& command, JsonWriter& json) {
  Bench<Memory> bench(std::chrono::milliseconds(command.quick ? 50 : 1000));
  json.member("strategy", command.strategy);
  const auto figure = [&](const std::string& name, auto measure) {
    if (!command.wants(name)) return;
    const Rate rate = measure();
    json.member(name + "_pair_ns", rate.pair_ns).member(name + "_p999_ns", rate.p999_ns);
  };
  for (const int threads : {1, 2, 8, 64}) {
    const std::string suffix = std::to_string(threads);
    figure("large_" + suffix, [&] { return bench.replace(threads, kLarge); });
    figure("small_" + suffix, [&] { return bench.replace(threads, kSmall); });
    if (threads == 1) continue;
    figure("handed_small_" + suffix, [&] { return bench.hand_over(threads, kSmall); });
    figure("handed_large_" + suffix, [&] { return bench.hand_over(threads, kLarge); });
  }
  if (command.strategy == "pool" && command.wants("streams")) {
    const int threads = command.quick ? 50 : 1000;
    json.member("streams_1_ns", streams_ns(1, 2)).member("streams_" + std::to_string(threads) + "_ns", streams_ns(threads, 2));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, "bench_threads", [](const Command& command, JsonWriter& json) {
    command.strategy == "pool" ? write_figures<PoolMemory>(command, json) : write_figures<MallocMemory>(command, json);
  });
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "berth/base/units.h"
#include "os/system.h"

// Measures the cost of allocating and freeing, for one allocator or for several side by side. A `Peer` has
//
//     Handle take(std::size_t bytes);    void give(Handle& handle);
//
// and is thread-safe. Everything is warm: each case runs once before it is measured, and the fastest round
// counts.
namespace berth::internal::cli {

struct AllocPace {
  int rounds = 7;
  int pairs = 20'000;  // per round
  int live = 20'000;   // blocks in the live_20000 case
  int threads = 8;
};

struct AllocFigure {
  std::string name;
  double ns = 0;  // per allocation and free, per thread
};

template <class Work>
double least_ns(int rounds, int count, const Work& work) {
  work();
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t begin = os::steady_time_ns();
    work();
    least = std::min(least, static_cast<double>(os::steady_time_ns() - begin) / count);
  }
  return least;
}

template <class Peer>
double pair_ns(Peer& peer, const AllocPace& pace, std::size_t bytes) {
  return least_ns(pace.rounds, pace.pairs, [&] {
    for (int i = 0; i < pace.pairs; ++i) {
      auto block = peer.take(bytes);
      peer.give(block);
    }
  });
}

// Replaces random blocks among many live blocks of random sizes.
template <class Peer>
double live_ns(Peer& peer, const AllocPace& pace) {
  Random random(7);
  const auto size = [&] { return std::size_t{512} << random.below(6); };
  std::vector<decltype(peer.take(1))> blocks;
  for (int i = 0; i < pace.live; ++i) blocks.push_back(peer.take(size()));
  const double ns = least_ns(pace.rounds, pace.pairs, [&] {
    for (int i = 0; i < pace.pairs; ++i) {
      auto& block = blocks[random.below(blocks.size())];
      peer.give(block);
      block = peer.take(size());
    }
  });
  for (auto& block : blocks) peer.give(block);
  return ns;
}

// Several threads allocate and free concurrently: the mean over the threads, in the fastest round.
template <class Peer>
double threads_ns(Peer& peer, const AllocPace& pace, std::size_t bytes) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round <= pace.rounds; ++round) {
    std::vector<double> took(static_cast<std::size_t>(pace.threads));
    std::latch ready(pace.threads);
    {
      std::vector<std::jthread> threads;
      for (double& mine : took) {
        threads.emplace_back([&] {
          for (int i = 0; i < 100; ++i) {
            auto block = peer.take(bytes);
            peer.give(block);
          }
          ready.arrive_and_wait();
          const std::uint64_t begin = os::steady_time_ns();
          for (int i = 0; i < pace.pairs; ++i) {
            auto block = peer.take(bytes);
            peer.give(block);
          }
          mine = static_cast<double>(os::steady_time_ns() - begin) / pace.pairs;
        });
      }
    }
    double all = 0;
    for (const double one : took) all += one;
    if (round > 0) least = std::min(least, all / pace.threads);
  }
  return least;
}

template <class Peer>
std::vector<AllocFigure> alloc_figures(Peer& peer, const AllocPace& pace) {
  return {{"pair_512", pair_ns(peer, pace, 512)},         {"pair_1mib", pair_ns(peer, pace, 1_MiB)},
          {"pair_20mib", pair_ns(peer, pace, 20_MiB)},    {"live_20000", live_ns(peer, pace)},
          {"threads_8_512", threads_ns(peer, pace, 512)}, {"threads_8_1mib", threads_ns(peer, pace, 1_MiB)}};
}

}  // namespace berth::internal::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "berth/memory/allocator.h"
#include "support/scale.h"

// Four threads allocate from several allocators at random, and free, while a fifth checks an invariant.
namespace berth::testing {

using namespace internal::base;

struct Churn {
  std::uint64_t steps;      // of each thread
  std::size_t most_blocks;  // of each thread, at one time
  std::function<std::size_t(Random&)> bytes;
  std::function<void(Random&)> meanwhile = [](Random&) {};  // before each step
  std::function<bool()> holds = [] { return true; };        // the invariant
};

struct Churned {
  std::uint64_t refused = 0;
  bool held = true;
};

// Every block is freed before churn returns.
inline Churned churn(const std::vector<std::shared_ptr<Allocator>>& all, const Churn& how) {
  std::atomic<std::uint64_t> refused{0};
  std::atomic<bool> held{true};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed() + t);
      std::vector<std::pair<Allocator*, Block>> own;
      for (std::uint64_t i = 0; i < how.steps; ++i) {
        how.meanwhile(random);
        if (random.one_in(2) && own.size() < how.most_blocks) {
          Allocator* const memory = all[random.below(all.size())].get();
          if (const auto block = memory->try_allocate({.bytes = how.bytes(random)}))
            own.emplace_back(memory, *block);
          else
            ++refused;
        } else if (!own.empty()) {
          std::swap(own[random.below(own.size())], own.back());
          own.back().first->deallocate(own.back().second);
          own.pop_back();
        }
      }
      for (const auto& [memory, block] : own) memory->deallocate(block);
    });
  }
  std::thread watching([&] {
    while (!stop) {
      if (!how.holds()) held = false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  watching.join();
  return {refused, held};
}

}  // namespace berth::testing

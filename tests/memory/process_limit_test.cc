// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "memory/budget.h"
#include "support/churn.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// The limit over all allocators of one memory.
namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

TEST(Budget, AClaimIsOneEverywhereOrNowhere) {
  Budget process({ErrorCode::out_of_memory, 0, "process"}, 100, nullptr);
  Budget first({ErrorCode::out_of_memory, 0, "first"}, 80, &process);
  Budget second({ErrorCode::out_of_memory, 0, "second"}, SIZE_MAX, &process);
  EXPECT_EQ(first.claim(60), nullptr);
  EXPECT_EQ(first.claim(21), &first);
  EXPECT_EQ(second.claim(41), &process);
  EXPECT_EQ(second.used(), 0U);
  EXPECT_EQ(second.room(), 40U);
  EXPECT_EQ(second.claim(40), nullptr);
  EXPECT_EQ(first.room(), 0U);
  first.give_up(60);
  EXPECT_EQ(process.used(), 40U);
  EXPECT_EQ(process.peak(), 100U);
  process.set_limit(30);
  EXPECT_EQ(second.room(), 0U);
  EXPECT_EQ(second.claim(1), &process);
}

TEST(ProcessLimit, CountsWhatEveryStrategyTakesAndNothingElse) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const std::vector<std::function<std::shared_ptr<Allocator>()>> makers = {[&] { return pool(device); }, [&] { return direct(device); },
                                                                           [&] { return arena(device, 32_MiB); },
                                                                           [&] { return rounded(device); }, [&] { return exact(device); }};
  for (const auto& make : makers) {
    {
      const auto memory = make();
      std::vector<Block> blocks;
      for (const std::size_t bytes : {std::size_t{100}, 70_KiB, 3_MiB}) blocks.push_back(memory->allocate({.bytes = bytes}));
      EXPECT_EQ(process_memory(device).committed_bytes, sim_control(device).committed_bytes()) << memory->name();
      for (const Block& block : blocks) memory->deallocate(block);
      EXPECT_EQ(process_memory(device).committed_bytes, sim_control(device).committed_bytes()) << memory->name();
      memory->trim(0);
      EXPECT_EQ(process_memory(device).committed_bytes, sim_control(device).committed_bytes()) << memory->name();
      memory->deallocate(memory->allocate({.bytes = 1_MiB}));
    }
    EXPECT_EQ(process_memory(device).committed_bytes, 0U) << "an allocator that is gone has nothing";
  }
  EXPECT_GE(process_memory(device).peak_committed_bytes, 3_MiB + 70_KiB + 100);
}

TEST(ProcessLimit, CoversAllAllocatorsOfADeviceTogether) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  set_process_limit(device, 8_MiB);
  const auto pooled = pool(device);
  const auto plain = direct(device);
  const Block kept = pooled->allocate({.bytes = 5_MiB, .tag = "weights"});
  EXPECT_FALSE(plain->try_allocate({.bytes = 3_MiB + 1}));
  const Block rest = plain->allocate({.bytes = 3_MiB, .tag = "batch"});
  EXPECT_FALSE(pooled->try_allocate({.bytes = 1}));
  EXPECT_EQ(sim_control(device).committed_bytes(), 8_MiB);
  plain->deallocate(rest);
  pooled->deallocate(kept);
  const auto elsewhere = pool(make_sim({.capacity_bytes = 64_MiB, .background = false}));
  const Block free = elsewhere->allocate({.bytes = 32_MiB});
  elsewhere->deallocate(free);
}

TEST(ProcessLimit, WhatOthersHaveCachedGoesBackFirst) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  set_process_limit(device, 8_MiB);
  const auto first = pool(device);
  const auto second = rounded(device);
  const auto third = limit(pool(device), 32_MiB);  // through an adaptor too
  first->deallocate(first->allocate({.bytes = 6_MiB}));
  const auto over_first = second->try_allocate({.bytes = 4_MiB});
  EXPECT_TRUE(over_first);
  if (over_first) second->deallocate(*over_first);
  const auto over_second = third->try_allocate({.bytes = 7_MiB});
  EXPECT_TRUE(over_second);
  if (over_second) third->deallocate(*over_second);
  const auto again = first->try_allocate({.bytes = 8_MiB});
  EXPECT_TRUE(again);
  if (again) first->deallocate(*again);
  EXPECT_LE(process_memory(device).peak_committed_bytes, 8_MiB);
  EXPECT_EQ(first->audit() + second->audit() + third->audit(), "");
}

TEST(ProcessLimit, ARefusalNamesItAndWhoHasTakenWhat) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  set_process_limit(device, 8_MiB);
  const auto first = pool(device);
  const auto second = arena(device, 4_MiB);
  const Block a = first->allocate({.bytes = 5_MiB, .tag = "weights"});
  const Block b = second->allocate({.bytes = 1_MiB, .tag = "scratch"});
  try {
    (void)first->allocate({.bytes = 4_MiB});
    FAIL() << "was served";
  } catch (const OutOfMemory& error) {
    const OutOfMemoryReport& report = error.report();
    EXPECT_EQ(report.limit_bytes, 8_MiB);
    EXPECT_NE(report.refused_by.find("process's limit of 8 MiB"), std::string::npos) << report.refused_by;
    EXPECT_EQ(report.would_be_enough_bytes, 2_MiB);
    ASSERT_EQ(report.shares.size(), 2U);
    EXPECT_EQ(report.shares[0].allocator, "pool");
    EXPECT_EQ(report.shares[0].committed_bytes, 5_MiB);
    EXPECT_EQ(report.shares[1].allocator, "arena");
    EXPECT_EQ(report.shares[1].in_use_bytes, 1_MiB);
    EXPECT_NE(report.to_string().find("arena on"), std::string::npos) << report.to_string();
    JsonWriter json;
    report.write_json(json);
    EXPECT_EQ(nlohmann::json::parse(json.take()).at("shares").size(), 2U);
  }
  second->deallocate(b);
  first->deallocate(a);
}

TEST(ProcessLimit, MayBeLoweredBelowWhatIsTaken) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device);
  const Block kept = memory->allocate({.bytes = 4_MiB});
  memory->deallocate(memory->allocate({.bytes = 8_MiB}));
  set_process_limit(device, 2_MiB);
  EXPECT_EQ(memory->stats().committed_bytes, 4_MiB) << "the cache went, the block stays";
  EXPECT_FALSE(memory->try_allocate({.bytes = 1_MiB}));
  memory->deallocate(kept);
  const auto fits = memory->try_allocate({.bytes = 1_MiB});
  EXPECT_TRUE(fits) << "served from what is cached";
  if (fits) memory->deallocate(*fits);
  set_process_limit(device, SIZE_MAX);
  const auto large = memory->try_allocate({.bytes = 32_MiB});
  EXPECT_TRUE(large);
  if (large) memory->deallocate(*large);
}

TEST(ProcessLimit, HostMemoryIsOneWhateverItIsCalled) {
  const auto first = pool("cpu");
  const auto second = pool("pinned");
  const std::size_t before = process_memory("cpu").committed_bytes;
  set_process_limit("pinned", before + 16_MiB);
  EXPECT_EQ(process_memory("cpu").limit_bytes, before + 16_MiB);
  const Block a = first->allocate({.bytes = 10_MiB});
  EXPECT_FALSE(second->try_allocate({.bytes = 10_MiB}));
  set_process_limit("cpu", SIZE_MAX);
  const Block b = second->allocate({.bytes = 10_MiB});
  first->deallocate(a);
  second->deallocate(b);
}

TEST(ProcessLimit, IsReadFromTheEnvironment) {
  setenv("BERTH_SIM_LIMIT", "4MiB", 1);
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device);
  EXPECT_EQ(process_memory(device).limit_bytes, 4_MiB);
  EXPECT_FALSE(memory->try_allocate({.bytes = 5_MiB}));
  setenv("BERTH_SIM_LIMIT", "plenty", 1);
  const Device other = make_sim({.capacity_bytes = 64_MiB, .background = false});
  EXPECT_ERROR((void)pool(other), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR((void)arena(other, 1_MiB), ArgumentError, ErrorCode::invalid_argument);
  unsetenv("BERTH_SIM_LIMIT");
  EXPECT_NO_THROW((void)pool(other));
  EXPECT_EQ(sim_control(other).committed_bytes(), 0U);
}

// Four threads over four allocators of one device; the device itself reports what is committed.
TEST(ProcessLimit, IsNeverExceededByConcurrentThreads) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .page_bytes = 4096, .background = false});
  constexpr std::size_t kLimit = 6_MiB;
  set_process_limit(device, kLimit);
  const std::vector<std::shared_ptr<Allocator>> all = {pool(device), rounded(device), direct(device), limit(pool(device), 4_MiB)};
  const auto [refused, kept] = churn(all, {.steps = scaled(20'000, 500),
                                           .most_blocks = 40,
                                           .bytes = [](Random& random) { return 1 + random.below(random.one_in(4) ? 1_MiB : 8_KiB); },
                                           .holds = [&] { return sim_control(device).committed_bytes() <= kLimit; }});
  EXPECT_TRUE(kept) << "more was taken than the limit";
  EXPECT_LE(process_memory(device).peak_committed_bytes, kLimit);
  EXPECT_GT(refused, 0U);
  for (const auto& memory : all) {
    EXPECT_EQ(memory->stats().in_use_bytes, 0U);
    EXPECT_EQ(memory->audit(), "");
    memory->trim(0);
  }
  EXPECT_EQ(process_memory(device).committed_bytes, 0U);
  EXPECT_EQ(sim_control(device).committed_bytes(), 0U);
  did(std::to_string(refused) + " requests refused");
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
// Bugs in the interaction of the pool's parts: private pools and the process limit, growth and streams that
// come and go. Each comment describes the bug.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "memory/budget.h"
#include "support/everything.h"
#include "support/hooked_backend.h"
#include "support/misuse_log.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

// Gives a stream pending work, which runs only when something waits.
void keep_busy(const Stream& stream, const Block& block) {
  const std::byte value{7};
  ASSERT_TRUE(backend(block.device).fill(block.data, block.bytes, {&value, 1}, stream).ok());
}

// The tenant was trimmed after its parent, and what it had cached stayed in the parent's cache: the request was
// refused.
TEST(RegressTogether, WhatATenantHasCachedServesOthersToo) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  set_process_limit(device, 16_MiB);
  const auto parent = pool(device);
  const auto tenant = private_pool(parent, {.fixed_pages = false});
  const auto other = pool(device);
  parent->deallocate(parent->allocate({.bytes = 1_MiB}));  // otherwise it has no range for the pages
  tenant->deallocate(tenant->allocate({.bytes = 12_MiB}));
  const auto block = other->try_allocate({.bytes = 12_MiB});
  EXPECT_TRUE(block);
  if (block) other->deallocate(*block);
  EXPECT_EQ(parent->audit() + tenant->audit() + other->audit(), "");
  set_process_limit(device, SIZE_MAX);
}

// Other pools released memory until there was room for the requested bytes, though the pool commits whole
// pages, and needs more.
TEST(RegressTogether, OthersGiveBackEnoughForWholePages) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .page_bytes = 2_MiB, .background = false});
  set_process_limit(device, 17_MiB);
  const auto first = pool(device);
  const auto second = pool(device);
  first->deallocate(first->allocate({.bytes = 16_MiB}));
  const auto small = second->try_allocate({.bytes = 100});
  EXPECT_TRUE(small) << "there is room for 1 MiB, and a page has 2";
  const auto large = second->try_allocate({.bytes = 900_KiB});
  EXPECT_TRUE(large);
  if (small) second->deallocate(*small);
  if (large) second->deallocate(*large);
  set_process_limit(device, SIZE_MAX);
}

// A claim that the budget below was about to refuse made one fail that fitted.
TEST(RegressTogether, AClaimThatIsRefusedBelowIsInNobodysWay) {
  Budget process({ErrorCode::out_of_memory, 0, "process"}, 150, nullptr);
  Budget pool({ErrorCode::out_of_memory, 0, "pool"}, 200, &process);
  std::atomic<bool> stop{false};
  std::thread greedy([&] {
    while (!stop) EXPECT_NE(pool.claim(160), nullptr);
  });
  for (std::uint64_t i = 0; i < scaled(2'000'000, 20'000); ++i) {
    EXPECT_EQ(pool.claim(100), nullptr);
    pool.give_up(100);
  }
  stop = true;
  greedy.join();
  EXPECT_EQ(process.used() + pool.used(), 0U);
}

// The work that releases the range updated the budget of a pool that was already destroyed.
TEST(RegressTogether, APrivatePoolMayEndBeforeTheWorkOnItsMemory) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const Stream stream = make_stream(device);
  auto parent = pool(device);
  auto child = private_pool(parent);
  const Block block = child->allocate({.bytes = 1_MiB, .stream = stream});
  keep_busy(stream, block);
  stream.enqueue([] {});  // without a background thread this runs only when something waits
  child->deallocate(block);
  child = nullptr;
  parent = nullptr;
  stream.synchronize();
  EXPECT_EQ(sim_control(device).committed_bytes(), 0U);
  EXPECT_EQ(process_memory(device).committed_bytes, 0U);
}

// A stream was destroyed, and another had its id: a block of the first grew into memory that the second was
// still working on.
TEST(RegressTogether, ABlockOfAStreamThatIsGoneDoesNotGrowIntoAnothersMemory) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device);
  Stream first = make_stream(device);
  Block block = memory->allocate({.bytes = 1_MiB, .stream = first});
  first = Stream();
  const Stream second = make_stream(device);
  const Block next = memory->allocate({.bytes = 1_MiB, .stream = second});
  const Block last = memory->allocate({.bytes = 1_MiB});
  ASSERT_EQ(static_cast<std::byte*>(next.data), static_cast<std::byte*>(block.data) + 1_MiB);
  keep_busy(second, next);
  second.enqueue([] {});
  memory->deallocate(next);
  EXPECT_FALSE(memory->try_grow(block, 2_MiB)) << "work on what follows is not done";
  second.synchronize();
  memory->trim(SIZE_MAX);  // queries the streams
  EXPECT_TRUE(memory->try_grow(block, 2_MiB));
  memory->deallocate(block);
  memory->deallocate(last);
  EXPECT_EQ(memory->audit(), "");
}

// Memory freed on destroyed streams was neither handed out nor released until another stream had their id.
TEST(RegressTogether, WhatIsFreedOnStreamsThatAreGoneIsEveryones) {
  const Device device = make_sim({.capacity_bytes = 16_MiB, .background = false});
  const auto memory = pool(device);
  std::vector<Block> blocks;
  {
    const Stream first = make_stream(device);
    const Stream second = make_stream(device);
    for (const Stream& stream : {first, second}) {
      blocks.push_back(memory->allocate({.bytes = 4_MiB, .stream = stream}));
      blocks.push_back(memory->allocate({.bytes = 1000, .stream = stream}));
    }
  }
  const Stream third = make_stream(device);  // has the id of one of them
  memory->deallocate(memory->allocate({.bytes = 4_MiB, .stream = third}));
  for (const Block& block : blocks) memory->deallocate(block);
  const auto all = memory->try_allocate({.bytes = 16_MiB});
  EXPECT_TRUE(all);
  if (all) memory->deallocate(*all);
  EXPECT_EQ(memory->audit(), "");
  memory->release_cached();
  EXPECT_EQ(sim_control(device).committed_bytes(), 0U);
}

// An arena queried the streams that may still work on reset memory before it handed that out, but not before a
// block grew into it.
TEST(RegressTogether, ABlockOfAnArenaDoesNotGrowIntoWhatAStreamIsAtWorkOn) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = arena(device, 8_MiB);
  const Stream stream = make_stream(device);
  Block kept = memory->allocate({.bytes = 1_MiB});
  const ArenaMark mark = memory->mark();
  const Block gone = memory->allocate({.bytes = 1_MiB, .stream = stream});
  keep_busy(stream, gone);
  stream.enqueue([] {});
  memory->deallocate(gone);
  memory->reset(mark);
  EXPECT_FALSE(memory->try_grow(kept, 2_MiB));
  EXPECT_EQ(kept.bytes, 1_MiB);
  stream.synchronize();
  EXPECT_TRUE(memory->try_grow(kept, 2_MiB));
  memory->deallocate(kept);
  EXPECT_EQ(memory->audit(), "");
}

// While a block grew, and the pool was in a call to the device, a free by address succeeded, and the pool grew
// a free block.
TEST(RegressTogether, ABlockThatGrowsIsNotFreedMeanwhile) {
  HookedBackend& device = hooked_backend();
  const auto memory = pool("hooked:0");
  Block block = memory->allocate({.bytes = 1_MiB});
  const Block by_address = memory->block_at(block.data, block.bytes);
  const Block stale = block;
  const MisuseLog log;
  std::size_t live = 0;
  device.at_next_commit([&] {
    memory->deallocate(by_address);
    memory->deallocate(stale);
    live = memory->stats().live_blocks;
    EXPECT_EQ(memory->audit(), "");
  });
  EXPECT_TRUE(memory->try_grow(block, 2_MiB));
  EXPECT_EQ(log.reported(), (std::vector{MisuseKind::foreign_free, MisuseKind::double_free}));
  EXPECT_EQ(live, 1U);
  EXPECT_EQ(memory->audit(), "");
  memory->deallocate(block);
  EXPECT_EQ(log.reported().size(), 2U);
  EXPECT_EQ(memory->stats().live_blocks, 0U);
}

// Threads that opened a pool together each reserved all the addresses they could get: where those are short,
// the first got fewer than it could have had, and the others none.
TEST(RegressTogether, OneThreadReservesWhileOthersWait) {
  HookedBackend& device = hooked_backend();
  const int before = device.reserves();
  const auto memory = pool("hooked:0", {.limit_bytes = 64_MiB});  // for which there are always addresses
  const auto use = [&] { memory->deallocate(memory->allocate({.bytes = 1_MiB})); };
  std::thread second;
  device.at_next_reserve([&] {
    second = std::thread(use);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  use();
  second.join();
  EXPECT_EQ(device.reserves() - before, 1);
  EXPECT_EQ(memory->stats().allocations, 2U);
}

// Serials of a pool do not order blocks of different threads, nor small blocks and large ones.
TEST(RegressTogether, TrackedBlocksAreInTheOrderTheyWereAllocated) {
  const auto memory = track(pool("cpu"));
  std::vector<Block> blocks;
  for (const std::size_t bytes : {100U, 3000000U, 100U, 4000000U}) blocks.push_back(memory->allocate({.bytes = bytes}));
  EXPECT_TRUE(memory->try_grow(blocks[0], 101));
  const std::vector<LiveBlock> live = memory->live();
  ASSERT_EQ(live.size(), blocks.size());
  for (std::size_t i = 0; i < live.size(); ++i) {
    EXPECT_EQ(live[i].block.data, blocks[i].data);
    memory->deallocate(blocks[i]);
  }
}

// A pressure callback may do anything with the allocators involved.
TEST(RegressTogether, APressureCallbackMayGrowAndTrimWhatIsShort) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto parent = pool(device, {.limit_bytes = 8_MiB});
  const auto child = private_pool(parent, {.fixed_pages = false});
  Block held = parent->allocate({.bytes = 2_MiB});
  Block grows = child->allocate({.bytes = 1_MiB});
  unsigned calls = 0;
  child->on_pressure([&](const Pressure&) {
    ++calls;
    parent->release_cached();
    child->release_cached();
    parent->trim_idle();
    EXPECT_TRUE(child->try_grow(grows, grows.bytes + 512_KiB));
    EXPECT_FALSE(child->try_allocate({.bytes = 7_MiB}));
    EXPECT_EQ(parent->stats().in_use_bytes, held.bytes);
    if (calls < 3) return true;
    parent->deallocate(held);
    return true;
  });
  const auto block = child->try_allocate({.bytes = 5_MiB + 256_KiB});
  EXPECT_TRUE(block);
  EXPECT_EQ(calls, 3U);
  EXPECT_EQ(parent->audit() + child->audit(), "");
  EXPECT_EQ(parent->stats().committed_bytes + child->stats().committed_bytes, sim_control(device).committed_bytes());
  if (block) child->deallocate(*block);
  child->deallocate(grows);
}

// Everything at once: tenants come and go while their parent trims, decays, grows, and presses them, at the
// process limit.
TEST(RegressTogether, TenantsComeAndGoWhileTheirParentTrims) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .page_bytes = 16_KiB, .background = false});
  set_process_limit(device, 12_MiB);
  const auto parent = pool(device, {.limit_bytes = 10_MiB, .decay = std::chrono::milliseconds(0)});
  std::atomic<bool> stop{false};
  std::thread trims([&] {
    while (!stop) {
      parent->trim(1_MiB);
      parent->trim_idle();
      EXPECT_LE(parent->stats().committed_bytes, 10_MiB);
      EXPECT_EQ(parent->audit(), "");
    }
  });
  const std::uint64_t rounds = scaled(2000, 40);
  const auto live = [&](std::uint64_t number) {
    Random random(seed() + number);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      const auto memory = number == 0 ? parent : private_pool(parent, {.limit_bytes = 6_MiB, .fixed_pages = i % 2 == 0});
      const Stream stream = make_stream(device);
      const Stream other = make_stream(device);
      std::vector<Block> blocks;
      for (int n = 0; n < 12; ++n) {
        auto block = memory->try_allocate({.bytes = 1 + random.below(random.one_in(3) ? 3_MiB : 20_KiB), .stream = stream});
        if (!block) continue;
        (void)memory->try_grow(*block, block->bytes + random.below(1_MiB));
        if (random.one_in(3)) memory->used_on(*block, other);
        blocks.push_back(*block);
        if (random.one_in(2)) {
          random.one_in(4) ? memory->deallocate_now(blocks.back()) : memory->deallocate(blocks.back());
          blocks.pop_back();
        }
      }
      EXPECT_EQ(memory->audit(), "");
      for (const Block& block : blocks) memory->deallocate(block);
      if (number != 0) {
        const Stats now = memory->stats();
        EXPECT_EQ(now.in_use_bytes, 0U);
        EXPECT_EQ(now.allocations, now.frees);
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < 3; ++number) threads.emplace_back(live, number);
  for (std::thread& thread : threads) thread.join();
  stop = true;
  trims.join();
  EXPECT_EQ(parent->stats().in_use_bytes, 0U);
  EXPECT_EQ(parent->stats().committed_bytes, sim_control(device).committed_bytes()) << "all tenants gave back what they had";
  EXPECT_EQ(process_memory(device).committed_bytes, sim_control(device).committed_bytes());
  EXPECT_LE(process_memory(device).peak_committed_bytes, 12_MiB);
  parent->release_cached();
  EXPECT_EQ(sim_control(device).committed_bytes(), 0U);
  did(std::to_string(2 * rounds) + " tenants, seed " + std::to_string(seed()));
  set_process_limit(device, SIZE_MAX);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/everything.h"
#include "support/hooked_backend.h"
#include "support/misuse_log.h"
#include "support/scale.h"

// Blocks of a pool that grow in place.
namespace berth::testing {

using namespace internal;
namespace {

TEST(PoolGrow, ALargeBlockGrowsIntoTheFreedOneBehindIt) {
  const auto memory = pool(make_sim({.capacity_bytes = 64_MiB, .background = false}));
  Block first = memory->allocate({.bytes = 1_MiB});
  const Block second = memory->allocate({.bytes = 1_MiB});
  const Block third = memory->allocate({.bytes = 1_MiB});
  const std::size_t committed = memory->stats().committed_bytes;
  EXPECT_FALSE(memory->try_grow(first, 2_MiB));
  memory->deallocate(second);
  EXPECT_FALSE(memory->try_grow(first, 2_MiB + 1)) << "the third is in the way";
  EXPECT_TRUE(memory->try_grow(first, 2_MiB));
  EXPECT_EQ(memory->stats().committed_bytes, committed) << "nothing was asked of the device";
  memory->deallocate(first);
  memory->deallocate(third);
  EXPECT_EQ(memory->stats().in_use_bytes, 0U);
  EXPECT_EQ(memory->audit(), "");
}

TEST(PoolGrow, ALargeBlockGrowsOverAddressesWithoutMemory) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device, {.limit_bytes = 32_MiB});
  Block last = memory->allocate({.bytes = 1_MiB});
  EXPECT_TRUE(memory->try_grow(last, 20_MiB));
  EXPECT_EQ(memory->stats().committed_bytes, 20_MiB);
  EXPECT_EQ(sim_control(device).committed_bytes(), 20_MiB);
  EXPECT_FALSE(memory->try_grow(last, 32_MiB + 1)) << "the limit covers it";
  EXPECT_EQ(memory->stats().committed_bytes, 20_MiB);
  {
    const Hold quiet = memory->hold();
    EXPECT_FALSE(memory->try_grow(last, 21_MiB)) << "a held device is asked for nothing";
  }
  EXPECT_TRUE(memory->try_grow(last, 32_MiB));
  memory->deallocate(last);
  EXPECT_EQ(memory->audit(), "");
}

TEST(PoolGrow, ASmallBlockGrowsWithinItsClass) {
  const auto memory = pool("cpu");
  Block block = memory->allocate({.bytes = 1100});  // in the size class of 1152 bytes
  EXPECT_TRUE(memory->try_grow(block, 1152));
  EXPECT_FALSE(memory->try_grow(block, 1153));
  memory->deallocate(block);
  EXPECT_EQ(memory->stats().in_use_bytes, 0U);
}

TEST(PoolGrow, ABlockOfAnotherThreadGrowsToo) {
  const auto memory = pool("cpu");
  Block block = memory->allocate({.bytes = 1100});
  std::thread([&] { EXPECT_TRUE(memory->try_grow(block, 1150)); }).join();
  EXPECT_EQ(memory->stats().in_use_bytes, 1150U);
  EXPECT_EQ(memory->stats().live_blocks, 1U);
  EXPECT_EQ(memory->audit(), "");
  const MisuseLog log;
  memory->deallocate(block);
  EXPECT_TRUE(log.reported().empty());
}

// Another thread frees the block while it grows, which no correct program does: one of the two wins, and the
// pool stays consistent.
TEST(PoolGrow, AFreeInTheMiddleIsADoubleFree) {
  HookedBackend& device = hooked_backend();
  const auto memory = pool("hooked:0");
  Block block = memory->allocate({.bytes = 1_MiB});
  const Block copy = block;
  const MisuseLog log;
  device.at_next_commit([&] { memory->deallocate(copy); });
  EXPECT_TRUE(memory->try_grow(block, 8_MiB));
  EXPECT_EQ(log.reported(), std::vector{MisuseKind::double_free});
  EXPECT_EQ(memory->stats().in_use_bytes, 8_MiB);
  EXPECT_EQ(memory->audit(), "");
  memory->deallocate(block);
  EXPECT_EQ(memory->audit(), "");
}

TEST(PoolGrow, ADeviceThatIsFullLeavesTheBlockAsItWas) {
  const auto memory = pool(make_sim({.capacity_bytes = 4_MiB, .background = false}));
  Block block = memory->allocate({.bytes = 3_MiB});
  const Block before = block;
  const Stats then = memory->stats();
  EXPECT_FALSE(memory->try_grow(block, 6_MiB));
  EXPECT_EQ(block, before);
  EXPECT_EQ(memory->stats().in_use_bytes, then.in_use_bytes);
  EXPECT_EQ(memory->audit(), "");
  EXPECT_TRUE(memory->try_grow(block, 4_MiB));
  memory->deallocate(block);
}

TEST(PoolGrow, ManyThreadsGrowTheirOwn) {
  const auto memory = pool("cpu", {.limit_bytes = 64_MiB});
  std::atomic<std::uint64_t> grown{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed() + t);
      for (std::uint64_t i = 0; i < scaled(20'000, 500); ++i) {
        std::optional<Block> block = memory->try_allocate({.bytes = 1 + random.below(random.one_in(2) ? 1_MiB : 4_KiB)});
        if (!block) continue;
        auto* const data = static_cast<std::byte*>(block->data);
        data[block->bytes - 1] = std::byte{7};
        const std::size_t last = block->bytes - 1;
        if (memory->try_grow(*block, block->bytes + 1 + random.below(block->bytes))) {
          ++grown;
          EXPECT_EQ(data[last], std::byte{7});
          data[block->bytes - 1] = std::byte{8};
        }
        memory->deallocate(*block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(grown, 0U);
  EXPECT_EQ(memory->stats().in_use_bytes, 0U);
  EXPECT_LE(memory->stats().peak_committed_bytes, 64_MiB);
  EXPECT_EQ(memory->audit(), "");
  did(std::to_string(grown) + " blocks grown");
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "memory/pool/regions.h"
#include "support/everything.h"
#include "support/misuse_log.h"
#include "support/scale.h"
#include "support/test_clock.h"

// Regions, from which threads that would wait for a pool's mutex get medium blocks: when there are some, what
// they serve, and how they are dissolved.
namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

std::shared_ptr<Allocator> with_regions(std::size_t limit = SIZE_MAX) { return pool("cpu", {.limit_bytes = limit, .region_waits = 0}); }

// Free memory in regions is said to be a slab's; here is no small block that could have one.
std::size_t free_in_regions(Allocator& memory) {
  std::size_t bytes = 0;
  for (const FreeRun& run : memory.snapshot().free) {
    if (run.kind == FreeKind::slab) bytes += run.bytes;
  }
  return bytes;
}
bool has_regions(Allocator& memory) { return free_in_regions(memory) > 0; }

// A byte of each page, and the last.
template <class Visit>
void visit_bytes(const Block& block, Visit visit) {
  auto* const data = static_cast<unsigned char*>(block.data);
  for (std::size_t at = 0; at < block.bytes; at += 4096) visit(data[at]);
  visit(data[block.bytes - 1]);
}
void fill(const Block& block) {
  visit_bytes(block, [&](unsigned char& byte) { byte = static_cast<unsigned char>(block.serial); });
}
bool is_whole(const Block& block, std::uint64_t serial) {
  bool whole = true;
  visit_bytes(block, [&](unsigned char byte) { whole = whole && byte == static_cast<unsigned char>(serial); });
  return whole;
}

TEST(Regions, ServeWhatIsNeitherSmallNorLargeAndHasNoStream) {
  const Stream stream = make_stream("cpu");
  const auto none = {Request{.bytes = 128_KiB}, Request{.bytes = 1_MiB + 1}, Request{.bytes = 300'000, .alignment = 16_KiB},
                     Request{.bytes = 300'000, .stream = stream}};
  for (const Request& request : none) {
    const auto memory = with_regions();
    memory->deallocate(memory->allocate({.bytes = 2_MiB}));
    const Block block = memory->allocate(request);
    EXPECT_LT(memory->stats().committed_bytes, Regions::kRegionBytes) << request.bytes;
    memory->deallocate(block);
  }
  for (const std::size_t bytes : {16_KiB + 1, 20_KiB}) {
    const auto memory = pool("cpu", {.small_bytes = 16_KiB, .region_waits = 0});
    const Block first = memory->allocate({.bytes = bytes});
    const Block second = memory->allocate({.bytes = bytes});
    EXPECT_TRUE(has_regions(*memory)) << bytes;
    memory->trim(0);
    EXPECT_EQ(memory->audit(), "");
    memory->deallocate(first);
    memory->deallocate(second);
    EXPECT_EQ(memory->stats().live_blocks, 0U);
  }
  for (const Request& request : {Request{.bytes = 128_KiB + 1}, Request{.bytes = 1_MiB}, Request{.bytes = 300'000, .alignment = 8_KiB}}) {
    const auto memory = with_regions();
    const Block block = memory->allocate(request);
    EXPECT_TRUE(has_regions(*memory)) << request.bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % Regions::kCellBytes, 0U);
    EXPECT_EQ(memory->audit(), "");
    memory->deallocate(block);
  }
}

TEST(Regions, ThereAreNoneForOneThreadAndWhereTheyMakeNoSense) {
  const auto random_pairs = [](Allocator& memory) {
    Random random(seed());
    for (std::uint64_t i = 0; i < 2000; ++i) memory.deallocate(memory.allocate({.bytes = 128_KiB + 1 + random.below(896_KiB)}));
    return has_regions(memory);
  };
  EXPECT_FALSE(random_pairs(*pool("cpu"))) << "no thread has waited";
  EXPECT_TRUE(random_pairs(*pool("cpu", {.region_waits = 0})));
  EXPECT_FALSE(random_pairs(*pool("cpu", {.region_waits = PoolOptions::kNoRegions})));
  EXPECT_FALSE(random_pairs(*pool("cpu", {.limit_bytes = 100_MiB, .region_waits = 0})));
  EXPECT_FALSE(random_pairs(*pool("cpu", {.decay = std::chrono::milliseconds(0), .region_waits = 0})));
  EXPECT_FALSE(random_pairs(*private_pool(pool("cpu", {.region_waits = 0}))));
  EXPECT_TRUE(random_pairs(*make_allocator("pool:waits=0", "cpu")));
}

// There, blocks of any size are large ones, and would have a cell alone.
TEST(Regions, ThereAreNoneForShortBlocksOfADeviceWithCoarseAlignment) {
  const auto memory = pool(make_sim({.alignment = 8192, .background = false}), {.region_waits = 0});
  const MisuseLog log;
  std::vector<Block> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(memory->allocate({.bytes = i % 2 == 0 ? 1000U : 300'000U}));
  memory->trim(0);
  EXPECT_EQ(memory->audit(), "");
  for (const Block& block : blocks) memory->deallocate(block);
  EXPECT_TRUE(log.reported().empty());
  EXPECT_EQ(memory->stats().live_blocks, 0U);
}

// Threads that do nothing but allocate and free meet at the mutex sooner or later.
TEST(Regions, ComeWhenThreadsWait) {
  const auto memory = pool("cpu", {.decay = PoolOptions::kNever});
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::size_t n = 0; !stop; ++n) memory->deallocate(memory->allocate({.bytes = 200'000 + n % 64 * 4096}));
    });
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!has_regions(*memory) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(has_regions(*memory));
}

TEST(Regions, ManyBlocksShareOne) {
  const auto memory = with_regions();
  std::vector<Block> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(memory->allocate({.bytes = 200'000}));
  EXPECT_EQ(memory->stats().commits, 1U);
  EXPECT_EQ(memory->stats().in_use_bytes, 40U * 200'000);
  const Snapshot now = memory->snapshot();
  ASSERT_EQ(now.blocks.size(), 40U);
  for (const SnapshotBlock& block : now.blocks) EXPECT_EQ(block.requested, 200'000U);
  EXPECT_TRUE(std::ranges::is_sorted(now.blocks, {}, &SnapshotBlock::offset));
  for (const Block& block : blocks) memory->deallocate(block);
  EXPECT_EQ(memory->audit(), "");
}

// A pool that needs more than ever before does not leave its regions half empty.
TEST(Regions, ThatAreSparseAreDissolvedBeforeThePoolGrows) {
  const auto memory = with_regions();
  std::vector<Block> blocks;
  for (int i = 0; i < 5000; ++i) blocks.push_back(memory->allocate({.bytes = 150'000}));
  const std::size_t before = memory->stats().committed_bytes;
  std::vector<Block> left;
  for (std::size_t i = 0; i < blocks.size(); ++i) i % 2 == 0 ? memory->deallocate(blocks[i]) : left.push_back(blocks[i]);
  for (int i = 0; i < 1250; ++i) left.push_back(memory->allocate({.bytes = 300'000}));
  EXPECT_LE(memory->stats().committed_bytes, before + before * 4 / 10) << "holes of 150,000 bytes do not serve these";
  EXPECT_EQ(memory->audit(), "");
  for (const Block& block : left) memory->deallocate(block);
  EXPECT_EQ(memory->stats().live_blocks, 0U);
}

TEST(Regions, WithoutBlocksReturnToTheSpaceButOne) {
  const auto memory = with_regions();
  std::vector<Block> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(memory->allocate({.bytes = 900'000}));
  for (const Block& block : blocks) memory->deallocate(block);
  EXPECT_EQ(free_in_regions(*memory), Regions::kRegionBytes);
  const Block large = memory->allocate({.bytes = 100_MiB});
  EXPECT_EQ(memory->stats().commits, 200 / 9 + 1U) << "what they were serves a large block";
  memory->deallocate(large);
  memory->trim(0);
  EXPECT_EQ(memory->stats().committed_bytes, 0U);
}

// What a limit leaves, and what is free in regions, is within reach, however it lies.
TEST(Regions, AreDissolvedBeforeARequestIsRefused) {
  constexpr std::size_t kLimit = 256_MiB;
  const auto memory = with_regions(kLimit);
  std::vector<Block> blocks;
  while (const auto block = memory->try_allocate({.bytes = 500 * 1024})) blocks.push_back(*block);
  EXPECT_GT(blocks.size() * 500 * 1024, kLimit - 2_MiB) << "regions leave no rest";
  std::vector<Block> kept;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 2 == 0)
      memory->deallocate(blocks[i]);
    else
      kept.push_back(blocks[i]);
  }
  for (const Block& block : kept) fill(block);
  const std::size_t in_use = memory->stats().in_use_bytes;
  const std::size_t page = 4096;
  const std::size_t rest = (kLimit - in_use) / page * page - 2 * page * (kept.size() + 1);  // a page at each end of each block
  const auto large = memory->try_allocate({.bytes = rest});
  ASSERT_TRUE(large) << rest << " of " << kLimit - in_use;
  fill(*large);
  for (const Block& block : kept) EXPECT_TRUE(is_whole(block, block.serial));
  EXPECT_EQ(memory->audit(), "");
  memory->deallocate(*large);
  for (const Block& block : kept) memory->deallocate(block);
  memory->trim(0);
  EXPECT_EQ(memory->stats().committed_bytes, 0U);
}

// Everything that can be done with a block can be done with one whose region was dissolved.
TEST(Regions, BlocksOutliveThem) {
  const auto memory = with_regions();
  std::vector<Block> blocks;
  for (int i = 0; i < 12; ++i) {
    blocks.push_back(memory->allocate({.bytes = 400'000, .tag = Tag("kept")}));
    fill(blocks.back());
  }
  const auto others = memory->allocate({.bytes = 400'000});
  for (std::size_t i = 0; i < blocks.size(); i += 3) memory->deallocate(blocks[i]);
  memory->trim(0);
  EXPECT_FALSE(has_regions(*memory));
  EXPECT_EQ(memory->audit(), "");
  EXPECT_EQ(memory->stats().live_blocks, 9U);
  EXPECT_LT(memory->stats().committed_bytes, Regions::kRegionBytes / 2 + 2_MiB);
  EXPECT_EQ(memory->holders()[0].bytes, 8U * 400'000);
  const MisuseLog log;
  memory->deallocate(blocks[0]);
  EXPECT_EQ(log.reported(), std::vector(1, MisuseKind::double_free));

  Block grows = blocks[1];
  EXPECT_TRUE(memory->try_grow(grows, 401'000)) << "into its last cell";
  EXPECT_TRUE(is_whole(blocks[1], blocks[1].serial));
  memory->deallocate(grows);
  memory->deallocate_now(blocks[2]);
  memory->deallocate(memory->block_at(blocks[4].data, blocks[4].bytes));
  std::thread([&] { memory->deallocate(blocks[5]); }).join();
  const Stream stream = make_stream("cpu");
  memory->used_on(blocks[7], stream);
  memory->deallocate(blocks[7]);
  for (int i = 0; i < 20; ++i) {  // the thread keeps it
    memory->deallocate(blocks[8]);
    blocks[8] = memory->allocate({.bytes = 400'000, .alignment = 16_KiB});
  }
  memory->deallocate(blocks[8]);
  memory->deallocate(blocks[10]);
  EXPECT_TRUE(is_whole(blocks[11], blocks[11].serial));
  memory->deallocate(blocks[11]);
  memory->deallocate(others);
  stream.synchronize();
  EXPECT_EQ(log.reported().size(), 1U);
  EXPECT_EQ(memory->stats().live_blocks, 0U);
  EXPECT_EQ(memory->audit(), "");
  memory->trim(0);
  EXPECT_EQ(memory->stats().committed_bytes, 0U);
}

TEST(Regions, ABlockGrowsIntoTheSlotsBehindIt) {
  const auto memory = with_regions();
  Block first = memory->allocate({.bytes = 200'000});
  const Block second = memory->allocate({.bytes = 200'000});
  fill(first);
  const Block before = first;
  EXPECT_TRUE(memory->try_grow(first, 25 * 8192)) << "its last cell";
  EXPECT_FALSE(memory->try_grow(first, 25 * 8192 + 1)) << "another block is there";
  memory->deallocate(second);
  EXPECT_TRUE(memory->try_grow(first, 400'000));
  EXPECT_TRUE(is_whole(before, before.serial));
  EXPECT_FALSE(memory->try_grow(first, 1_MiB + 1)) << "no block of a region is longer";
  EXPECT_EQ(memory->stats().in_use_bytes, 400'000U);
  EXPECT_EQ(memory->audit(), "");
  memory->deallocate(first);
}

TEST(Regions, UsesOnStreamsAndFreesNowDissolveOne) {
  const auto memory = with_regions();
  const Stream stream = make_stream("cpu");
  const Block used = memory->allocate({.bytes = 300'000});
  memory->used_on(used, stream);
  EXPECT_FALSE(has_regions(*memory));
  memory->deallocate(used);
  stream.synchronize();
  const Block now = memory->allocate({.bytes = 1_MiB});
  const Block other = memory->allocate({.bytes = 300'000});
  EXPECT_TRUE(has_regions(*memory));
  const std::size_t before = memory->stats().committed_bytes;
  memory->deallocate_now(now);
  EXPECT_LT(memory->stats().committed_bytes, before);
  EXPECT_EQ(memory->audit(), "");
  memory->deallocate(other);
}

TEST(Regions, ThatAreNotUsedForAPeriodReturnWhatIsFree) {
  TestClock clock;
  const auto memory = with_regions();
  std::vector<Block> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(memory->allocate({.bytes = 1'000'000}));
  for (std::size_t i = 1; i < blocks.size(); ++i) memory->deallocate(blocks[i]);
  memory->trim_idle();
  for (int period = 0; period < 4; ++period) {
    clock.advance(std::chrono::seconds(11));
    memory->trim_idle();
  }
  EXPECT_FALSE(has_regions(*memory));
  EXPECT_LT(memory->stats().committed_bytes, 4_MiB);
  memory->deallocate(blocks[0]);
}

// Also when threads no longer wait: what is free in regions serves what it can.
TEST(Regions, ServeWhileThereAreSome) {
  TestClock clock;
  const auto memory = with_regions();
  std::vector<Block> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(memory->allocate({.bytes = 500'000}));
  clock.advance(std::chrono::seconds(11));
  memory->trim_idle();
  const std::size_t free = free_in_regions(*memory);
  memory->deallocate(blocks.back());
  blocks.back() = memory->allocate({.bytes = 500'000});
  EXPECT_EQ(free_in_regions(*memory), free);
  for (const Block& block : blocks) memory->deallocate(block);
}

// A short hole in one does not hide a longer one in another.
TEST(Regions, AreFoundByTheirLongestRun) {
  const auto memory = with_regions();
  std::vector<Block> blocks;
  constexpr std::size_t kCells = 127;
  for (int i = 0; i < 160; ++i) blocks.push_back(memory->allocate({.bytes = kCells * Regions::kCellBytes}));
  for (std::size_t i = 0; i < blocks.size(); i += 2) memory->deallocate(blocks[i]);
  for (int i = 0; i < 4; ++i) blocks.push_back(memory->allocate({.bytes = 62 * Regions::kCellBytes}));  // leave runs of 65
  const std::size_t before = memory->stats().committed_bytes;
  for (std::size_t i = 0; i < 76; ++i) blocks[2 * i] = memory->allocate({.bytes = kCells * Regions::kCellBytes});
  EXPECT_EQ(memory->stats().committed_bytes, before);
  EXPECT_EQ(memory->audit(), "");
}

// Reserving counts what is live, and not what is free in regions: that decays.
TEST(Regions, AReservationDoesNotKeepWhatIsFreeInThem) {
  TestClock clock;
  const auto memory = with_regions();
  std::vector<Block> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(memory->allocate({.bytes = 1'000'000}));
  for (std::size_t i = 1; i < blocks.size(); ++i) memory->deallocate(blocks[i]);
  memory->reserve(1_MiB);
  memory->deallocate(blocks[0]);
  for (int period = 0; period < 6; ++period) {
    clock.advance(std::chrono::seconds(11));
    memory->trim_idle();
  }
  EXPECT_LT(memory->stats().committed_bytes, 8_MiB);
}

// What was reserved serves requests before the device is asked.
TEST(Regions, UseWhatWasReserved) {
  const auto memory = with_regions();
  memory->reserve(64_MiB);
  const std::uint64_t commits = memory->stats().commits;
  std::vector<Block> blocks;
  for (int i = 0; i < 60; ++i) blocks.push_back(memory->allocate({.bytes = 1'000'000}));
  EXPECT_EQ(memory->stats().commits, commits);
  for (const Block& block : blocks) memory->deallocate(block);
}

}  // namespace
}  // namespace berth::testing

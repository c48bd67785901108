// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/random.h"
#include "support/churn.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// The limit of a pool, and its reports when it refuses.
namespace berth::testing {

using namespace internal;
namespace {

TEST(PoolLimit, IsServedToTheLastByte) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device, {.limit_bytes = 8_MiB});
  EXPECT_FALSE(memory->try_allocate({.bytes = 8_MiB + 1}));
  const auto whole = memory->try_allocate({.bytes = 8_MiB});
  ASSERT_TRUE(whole);
  EXPECT_FALSE(memory->try_allocate({.bytes = 1}));
  EXPECT_FALSE(memory->try_allocate({.bytes = 1_MiB}));
  memory->deallocate(*whole);
  std::vector<Block> parts;
  for (int i = 0; i < 8; ++i) parts.push_back(memory->allocate({.bytes = 1_MiB}));
  EXPECT_FALSE(memory->try_allocate({.bytes = 1}));
  EXPECT_EQ(memory->stats().committed_bytes, 8_MiB);
  for (const Block& block : parts) memory->deallocate(block);
  EXPECT_EQ(memory->audit(), "");
}

TEST(PoolLimit, IsServedThroughHolesToo) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device, {.limit_bytes = 8_MiB});
  std::vector<Block> parts;
  for (int i = 0; i < 32; ++i) parts.push_back(memory->allocate({.bytes = 256_KiB}));
  for (std::size_t i = 0; i < parts.size(); i += 2) memory->deallocate(parts[i]);
  const auto half = memory->try_allocate({.bytes = 4_MiB});
  EXPECT_TRUE(half) << "sixteen holes make one block, once their pages are moved";
  EXPECT_LE(memory->stats().committed_bytes, 8_MiB);
  if (half) memory->deallocate(*half);
  for (std::size_t i = 1; i < parts.size(); i += 2) memory->deallocate(parts[i]);
  EXPECT_EQ(memory->audit(), "");
}

TEST(PoolLimit, SmallBlocksInCachesDoNotStandInTheWayOfALargeOne) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device, {.limit_bytes = 8_MiB});
  std::vector<Block> small;
  while (const auto block = memory->try_allocate({.bytes = 3000})) small.push_back(*block);
  EXPECT_GT(small.size(), 8_MiB / 3000 * 8 / 10);
  for (const Block& block : small) memory->deallocate(block);
  const auto whole = memory->try_allocate({.bytes = 8_MiB});
  EXPECT_TRUE(whole);
  if (whole) memory->deallocate(*whole);
}

void never_exceeded(Device device, std::size_t limit) {
  const auto memory = pool(device, {.limit_bytes = limit});
  const auto holds = [&] {
    const bool within = memory->stats().committed_bytes <= limit;
    return within && (device.kind_name() != "sim" || sim_control(device).committed_bytes() <= limit);
  };
  const auto [refused, kept] =
      churn({memory}, {.steps = scaled(50'000, 1000),
                       .most_blocks = 100,
                       .bytes = [&](Random& random) { return 1 + random.below(random.one_in(4) ? limit / 4 : 8_KiB); },
                       .holds = holds});
  EXPECT_TRUE(kept) << "more was committed than the limit";
  EXPECT_LE(memory->stats().peak_committed_bytes, limit);
  EXPECT_GT(refused, 0U) << "the limit was never reached";
  EXPECT_EQ(memory->stats().failures, refused);
  EXPECT_EQ(memory->stats().in_use_bytes, 0U);
  EXPECT_EQ(memory->audit(), "");
  did(std::to_string(refused) + " requests refused on " + device.to_string());
}

TEST(PoolLimit, IsNeverExceededByConcurrentThreadsOnTheHost) { never_exceeded("cpu", 16_MiB); }
TEST(PoolLimit, IsNeverExceededByConcurrentThreadsOnADevice) {
  never_exceeded(make_sim({.capacity_bytes = 64_MiB, .background = false}), 5_MiB);
}

TEST(PoolLimit, ARefusalSaysWhatWasAskedHeldAndTried) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device, {.limit_bytes = 8_MiB});
  const Block kept = memory->allocate({.bytes = 2_MiB, .tag = "weights"});
  const Block small = memory->allocate({.bytes = 100, .tag = "bias"});
  const Block gone = memory->allocate({.bytes = 1_MiB, .tag = "gone"});
  memory->deallocate(gone);
  try {
    memory->allocate({.bytes = 7_MiB, .tag = "kv"});
    FAIL() << "was served";
  } catch (const OutOfMemory& error) {
    const OutOfMemoryReport& report = error.report();
    EXPECT_EQ(report.device, device);
    EXPECT_EQ(report.allocator, "pool");
    EXPECT_EQ(report.requested_bytes, 7_MiB);
    EXPECT_EQ(report.tag, Tag("kv"));
    EXPECT_EQ(report.limit_bytes, 8_MiB);
    EXPECT_NE(report.refused_by.find("8 MiB"), std::string::npos) << report.refused_by;
    EXPECT_EQ(report.in_use_bytes, 2_MiB + 100);
    EXPECT_EQ(report.in_use_bytes + report.cached_bytes, memory->stats().committed_bytes);
    EXPECT_GE(report.largest_free_run_bytes, 1_MiB);
    EXPECT_EQ(report.device_total_bytes, 64_MiB);
    EXPECT_GE(report.device_free_bytes, 56_MiB);
    ASSERT_EQ(report.top_holders.size(), 2U);
    EXPECT_EQ(report.top_holders[0].tag, Tag("weights"));
    EXPECT_EQ(report.top_holders[0].bytes, 2_MiB);
    EXPECT_EQ(report.top_holders[0].blocks, 1U);
    EXPECT_EQ(report.top_holders[1].tag, Tag("bias"));
    ASSERT_EQ(report.tried.size(), 4U);
    EXPECT_EQ(report.tried[2], "waited for the work of streams behind what was freed: 0 times");
    EXPECT_EQ(report.pinned_bytes, 0U) << "pages of this device move one by one";
    EXPECT_GE(report.would_be_enough_bytes, 1_MiB);
    EXPECT_LE(report.would_be_enough_bytes, 2_MiB);
    EXPECT_FALSE(report.to_string().empty());
  }
  memory->deallocate(kept);
  memory->deallocate(small);
}

TEST(PoolLimit, ADeviceThatIsFullIsBlamedItself) {
  const Device device = make_sim({.capacity_bytes = 4_MiB, .background = false});
  const auto memory = pool(device);
  const Block kept = memory->allocate({.bytes = 2_MiB, .tag = "weights"});
  try {
    memory->allocate({.bytes = 3_MiB});
    FAIL() << "was served";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().refused_by, "the device");
    EXPECT_EQ(error.report().limit_bytes, 0U);
    EXPECT_EQ(error.report().would_be_enough_bytes, 1_MiB);
  }
  memory->deallocate(kept);
  const auto now = memory->try_allocate({.bytes = 3_MiB});
  EXPECT_TRUE(now);
  if (now) memory->deallocate(*now);
}

// The cost of committing GPU memory is the number of pieces.
TEST(PoolPieces, AreSharedByTheBlocksToComeWithinTheTarget) {
  constexpr std::size_t kBlocks = 40;
  const Device device = make_sim({.capacity_bytes = 64_MiB, .page_bytes = 64_KiB, .piece_bytes = 8_MiB, .background = false});
  const auto memory = pool(device);
  std::vector<Block> blocks{memory->allocate({.bytes = 24_MiB})};
  for (std::size_t i = 0; i < kBlocks; ++i) blocks.push_back(memory->allocate({.bytes = 192_KiB}));
  EXPECT_LE(sim_control(device).count(SimOperation::commit), kBlocks * 2 / 3) << "most blocks find memory that came with another";
  const Stats stats = memory->stats();
  EXPECT_LE(static_cast<double>(stats.committed_bytes), 1.01 * static_cast<double>(stats.in_use_bytes));
  EXPECT_EQ(memory->audit(), "");
  for (const Block& block : blocks) memory->deallocate(block);
}

// What is committed ahead for later blocks must not exceed the limit.
TEST(PoolPieces, ComeToTheLastByteOfALimit) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .page_bytes = 64_KiB, .piece_bytes = 8_MiB, .background = false});
  const auto memory = pool(device, {.limit_bytes = 32_MiB});
  std::vector<Block> blocks{memory->allocate({.bytes = 24_MiB})};
  for (int i = 0; i < 32; ++i) blocks.push_back(memory->allocate({.bytes = 256_KiB}));
  EXPECT_FALSE(memory->try_allocate({.bytes = 1_MiB}));
  EXPECT_EQ(memory->stats().committed_bytes, 32_MiB);
  for (const Block& block : blocks) memory->deallocate(block);
}

// A pool that was larger once, and has released everything, must not commit one piece for many blocks: the
// holes between them could never be decommitted.
TEST(PoolPieces, StayShortEnoughForHolesToServeALimit) {
  const Device device = make_sim({.capacity_bytes = 128_MiB, .page_bytes = 2_MiB, .piece_bytes = 32_MiB, .background = false});
  const auto memory = pool(device, {.limit_bytes = 24_MiB});
  for (int round = 0; round < 3; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(memory->allocate({.bytes = 4_MiB}));
    blocks.push_back(memory->allocate({.bytes = 8_MiB}));
    memory->deallocate(blocks[0]);
    memory->deallocate(blocks[2]);
    const auto late = memory->try_allocate({.bytes = 8_MiB});
    ASSERT_TRUE(late) << "two holes of 4 MiB make one block, in round " << round;
    for (const std::size_t i : {1U, 3U, 4U}) memory->deallocate(blocks[i]);
    memory->deallocate(*late);
    memory->release_cached();
    ASSERT_EQ(memory->audit(), "");
  }
}

// Where little room is left, a block that ends inside a free piece gets it cut, so that the rest can serve elsewhere.
TEST(PoolPieces, AreCutBeforeABlockPinsThem) {
  const Device device = make_sim({.capacity_bytes = 512_MiB, .page_bytes = 2_MiB, .piece_bytes = 128_MiB, .background = false});
  const auto memory = pool(device, {.limit_bytes = 130_MiB});
  const Block first = memory->allocate({.bytes = 64_MiB});
  const Block between = memory->allocate({.bytes = 2_MiB});
  const Block second = memory->allocate({.bytes = 64_MiB});
  memory->deallocate(first);
  const Block third = memory->allocate({.bytes = 34_MiB});  // ends in the second piece, and leaves 30 MiB of it
  memory->deallocate(second);
  const auto all = memory->try_allocate({.bytes = 94_MiB});  // these and the pieces of the second block
  ASSERT_TRUE(all) << "free memory was pinned";
  EXPECT_EQ(memory->stats().committed_bytes, 130_MiB);
  EXPECT_EQ(memory->audit(), "");
  for (const Block& block : {between, third, *all}) memory->deallocate(block);
}

// Of 94 MiB that are cached, 30 lie in a piece whose rest is live.
void expect_pinned(Allocator& memory, StreamRef stream) {
  try {
    memory.allocate({.bytes = 94_MiB, .stream = stream});
    FAIL() << "was served";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().cached_bytes, 94_MiB);
    EXPECT_EQ(error.report().pinned_bytes, 30_MiB);
    EXPECT_EQ(error.report().would_be_enough_bytes, 30_MiB);
    EXPECT_NE(error.report().to_string().find("30 MiB in pieces that are partly live"), std::string::npos);
    EXPECT_NE(error.report().tried[2].find("wait_for_streams is off"), std::string::npos);
  }
}

// The same where all work is on a stream: what is freed is cut when the stream is past the free, which is waited for.
TEST(PoolPieces, AreCutBehindTheWorkOfTheirStream) {
  for (const bool waits : {true, false}) {
    const Device device = make_sim({.capacity_bytes = 512_MiB, .page_bytes = 2_MiB, .piece_bytes = 128_MiB, .background = false});
    const auto memory = pool(device, {.limit_bytes = 130_MiB, .wait_for_streams = waits});
    const Stream stream = make_stream(device);
    const auto allocate = [&](std::size_t bytes) { return memory->try_allocate({.bytes = bytes, .stream = stream}); };
    const Block first = *allocate(64_MiB);
    const Block between = *allocate(2_MiB);
    const Block second = *allocate(64_MiB);
    bool ran = false;
    bool later = false;
    stream.enqueue([&] { ran = true; });
    memory->deallocate(first);
    stream.enqueue([&] { later = true; });
    const Block third = *allocate(34_MiB);
    EXPECT_EQ(ran, waits);
    EXPECT_FALSE(later) << "work behind the free was waited for";
    memory->deallocate(second);
    const auto all = allocate(94_MiB);
    EXPECT_EQ(all.has_value(), waits) << "what was not cut is pinned";
    if (!waits) expect_pinned(*memory, stream);
    EXPECT_EQ(memory->audit(), "");
    for (const Block& block : {between, third, all.value_or(Block())}) memory->deallocate(block);
    stream.synchronize();
  }
}

// A block of a stream lies across what that has just freed and what was free before.
TEST(PoolPieces, FreedOnAStreamTakeCleanMemoryOver) {
  const Device device = make_sim({.capacity_bytes = 512_MiB, .page_bytes = 2_MiB, .piece_bytes = 128_MiB, .background = false});
  const auto memory = pool(device);
  const Stream stream = make_stream(device);
  const auto allocate = [&](std::size_t bytes) { return memory->allocate({.bytes = bytes, .stream = stream}); };
  const Block first = allocate(40_MiB);
  const Block second = allocate(60_MiB);
  memory->deallocate(first);
  stream.synchronize();
  memory->deallocate(allocate(20_MiB));  // the pool has seen what is over
  stream.enqueue([] {});
  memory->deallocate(second);
  const Block both = allocate(100_MiB);
  EXPECT_EQ(memory->stats().committed_bytes, 100_MiB);
  EXPECT_EQ(sim_control(device).count(SimOperation::move), 0U);
  memory->deallocate(both);
  stream.synchronize();
}

// Sizes at random for ever: moving pieces for each of them would cost more than the memory that it saves.
TEST(PoolPieces, AreNotMovedForEver) {
  constexpr std::uint64_t kPairs = 20'000;
  const Device device = make_sim({.capacity_bytes = 4_GiB, .page_bytes = 2_MiB, .piece_bytes = 128_MiB, .background = false});
  const auto memory = pool(device);
  internal::Random random(seed());
  std::vector<Block> live(16);
  const auto run = [&] {
    for (std::uint64_t i = 0; i < kPairs; ++i) {
      Block& block = live[random.below(live.size())];
      memory->deallocate(std::exchange(block, Block{}));
      block = memory->allocate({.bytes = 1_MiB + random.below(127_MiB)});
    }
  };
  const auto calls = [&] { return sim_control(device).count(SimOperation::move) + sim_control(device).count(SimOperation::decommit); };
  run();
  const std::uint64_t before = calls();
  run();
  EXPECT_LE(calls() - before, 3 * kPairs / 1024);
  EXPECT_LE(static_cast<double>(memory->stats().peak_committed_bytes), 1.3 * static_cast<double>(memory->stats().peak_in_use_bytes));
  did(std::to_string(before) + " moves at first, then " + std::to_string(calls() - before));
  for (const Block& block : live) memory->deallocate(block);
}

// What a cut gives back may not come again.
TEST(PoolPieces, SurviveACutThatFails) {
  const Device device = make_sim({.capacity_bytes = 512_MiB, .page_bytes = 2_MiB, .piece_bytes = 128_MiB, .background = false});
  for (const std::uint64_t nth : {1U, 2U}) {
    const auto memory = pool(device, {.limit_bytes = 100_MiB});
    memory->deallocate(memory->allocate({.bytes = 96_MiB}));
    sim_control(device).fail_after(SimOperation::commit, nth);
    const auto part = memory->try_allocate({.bytes = 10_MiB});
    ASSERT_TRUE(part) << "there is enough besides";
    EXPECT_LT(memory->stats().committed_bytes, 96_MiB);
    sim_control(device).clear_faults();
    const auto rest = memory->try_allocate({.bytes = 90_MiB});
    ASSERT_TRUE(rest);
    EXPECT_EQ(memory->audit(), "");
    memory->deallocate(*part);
    memory->deallocate(*rest);
  }
}

}  // namespace
}  // namespace berth::testing

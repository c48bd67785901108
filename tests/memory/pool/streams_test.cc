// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/everything.h"

// Streams: freed memory is reused at once by the same stream, and by another only when that stream cannot
// observe it. On a simulated device whose streams run as late, and in as odd an order, as is legal.
namespace berth::testing {

using namespace internal;
namespace {

class PoolStreams : public ::testing::TestWithParam<std::size_t> {
 protected:
  PoolStreams() : device_(make_sim({.capacity_bytes = 64_MiB, .background = false})), memory_(pool(device_)) {}
  Block allocate(const Stream& stream) { return memory_->allocate({.bytes = GetParam(), .stream = stream}); }
  // Keeps a stream busy until something waits for it: a query runs no host function.
  static void keep_busy(const Stream& stream) {
    stream.enqueue([] {});
  }

  Device device_;
  std::shared_ptr<Allocator> memory_;
};

TEST_P(PoolStreams, AFreedBlockIsReusedAtOnceOnItsStream) {
  const Stream a = make_stream(device_);
  const Block first = allocate(a);
  keep_busy(a);
  memory_->deallocate(first);
  const Block second = allocate(a);
  EXPECT_EQ(second.data, first.data);
  memory_->deallocate(second);
  a.synchronize();
}

TEST_P(PoolStreams, AFreedBlockIsNotUsedByAnotherStreamBeforeItsWorkIsDone) {
  const Stream a = make_stream(device_);
  const Stream b = make_stream(device_);
  const Block first = allocate(a);
  keep_busy(a);
  memory_->deallocate(first);
  memory_->trim(0);
  std::vector<Block> others;
  for (int i = 0; i < 20; ++i) {
    for (const Stream& stream : {b, Stream()}) {
      others.push_back(allocate(stream));
      EXPECT_NE(others.back().data, first.data);
    }
  }
  EXPECT_EQ(memory_->audit(), "");
  for (const Block& block : others) memory_->deallocate(block);
  a.synchronize();
}

TEST_P(PoolStreams, AFreedBlockIsEveryonesOnceItsWorkIsDone) {
  const Stream a = make_stream(device_);
  const Stream b = make_stream(device_);
  const Block first = allocate(a);
  keep_busy(a);
  memory_->deallocate(first);
  memory_->trim(SIZE_MAX);  // returns small blocks to their slabs, and slabs to the pool
  a.synchronize();
  memory_->trim(SIZE_MAX);
  const std::size_t committed = memory_->stats().committed_bytes;
  const Block second = allocate(b);
  EXPECT_EQ(second.data, first.data);
  EXPECT_EQ(memory_->stats().committed_bytes, committed);
  memory_->deallocate(second);
}

TEST_P(PoolStreams, OtherStreamsFreesDoNotMakeItClean) {
  const Stream a = make_stream(device_);
  const Stream b = make_stream(device_);
  const Block first = allocate(a);
  keep_busy(a);
  memory_->deallocate(first);
  for (int i = 0; i < 10; ++i) {
    const Block block = allocate(b);
    EXPECT_NE(block.data, first.data);
    memory_->deallocate(block);
    b.synchronize();
    memory_->trim(SIZE_MAX);
  }
  a.synchronize();
}

TEST_P(PoolStreams, TrimLeavesMemoryThatAStreamMayStillUse) {
  const Stream a = make_stream(device_);
  const Block block = allocate(a);
  keep_busy(a);
  memory_->deallocate(block);
  const std::size_t before = memory_->stats().committed_bytes;
  memory_->trim(0);
  EXPECT_GE(memory_->stats().committed_bytes, std::min(before, GetParam()));
  a.synchronize();
  memory_->trim(0);
  EXPECT_EQ(memory_->stats().committed_bytes, 0U);
}

TEST_P(PoolStreams, DeallocateNowWaitsForTheStream) {
  const Stream a = make_stream(device_);
  const Block block = allocate(a);
  const std::size_t before = memory_->stats().committed_bytes;
  bool ran = false;
  a.enqueue([&] { ran = true; });
  memory_->deallocate_now(block);
  EXPECT_TRUE(ran);
  EXPECT_LT(memory_->stats().committed_bytes, before);
}

TEST_P(PoolStreams, AStreamMayBeDroppedWhileBlocksWaitForIt) {
  const std::byte value{7};
  std::vector<Block> blocks;
  for (int i = 0; i < 5; ++i) {
    const Stream a = make_stream(device_);
    const Block block = allocate(a);
    ASSERT_TRUE(memory_->backend().fill(block.data, block.bytes, {&value, 1}, a).ok());
    keep_busy(a);
    memory_->deallocate(block);
  }
  for (int i = 0; i < 5; ++i) {
    const Stream b = make_stream(device_);
    const Block block = allocate(b);
    ASSERT_TRUE(memory_->backend().fill(block.data, block.bytes, {&value, 1}, b).ok());
    blocks.push_back(block);
  }
  for (const Block& block : blocks) memory_->deallocate_now(block);
  memory_->trim(0);
  EXPECT_EQ(memory_->stats().live_blocks, 0U);
  EXPECT_EQ(memory_->audit(), "");
}

TEST_P(PoolStreams, AWaitThatWasIssuedPassesMemoryOn) {
  const Stream a = make_stream(device_);
  const Stream b = make_stream(device_);
  const Block first = allocate(a);
  keep_busy(a);
  memory_->deallocate(first);
  memory_->trim(SIZE_MAX);  // returns small blocks to their slabs, and slabs to the pool
  b.wait(a.record());
  const std::size_t committed = memory_->stats().committed_bytes;
  const Block second = allocate(b);
  EXPECT_EQ(second.data, first.data);
  EXPECT_EQ(memory_->stats().committed_bytes, committed);
  keep_busy(b);
  memory_->deallocate(second);
  memory_->trim(SIZE_MAX);
  EXPECT_NE(allocate(Stream()).data, first.data) << "b may be at work on it now";
  EXPECT_EQ(memory_->audit(), "");
}

TEST_P(PoolStreams, ABlockThatSeveralStreamsUseWaitsForAllOfThem) {
  const Stream a = make_stream(device_);
  const Stream b = make_stream(device_);
  for (const bool elsewhere : {false, true}) {                      // on which thread the use is reported and
                                                                    // the block freed
    for (int i = 0; i < 12; ++i) memory_->deallocate(allocate(a));  // in turn: this thread keeps a large one
    const Block first = allocate(a);
    const auto use_and_free = [&] {
      memory_->used_on(first, b);
      EXPECT_EQ(memory_->audit(), "");
      keep_busy(b);
      memory_->deallocate(first);
    };
    if (elsewhere)
      std::thread(use_and_free).join();
    else
      use_and_free();
    EXPECT_EQ(memory_->stats().in_use_bytes, 0U);
    std::vector<Block> others;
    for (int i = 0; i < 20; ++i) {
      others.push_back(allocate(i % 2 == 0 ? a : b));
      EXPECT_NE(others.back().data, first.data);
    }
    EXPECT_EQ(memory_->audit(), "");
    for (const Block& block : others) memory_->deallocate(block);
    b.synchronize();
    a.synchronize();
    memory_->trim(0);
    EXPECT_EQ(memory_->stats().committed_bytes, 0U);
  }
}

TEST_P(PoolStreams, AStreamThatComesAfterTheOthersReusesTheirBlockAtOnce) {
  const Stream a = make_stream(device_);
  const Stream b = make_stream(device_);
  const Block first = allocate(a);
  memory_->used_on(first, b);
  keep_busy(b);
  memory_->deallocate(first);
  a.wait(b.record());
  std::vector<Block> others;
  bool found = false;
  for (int i = 0; i < 200 && !found; ++i) {  // small ones: when the bin is empty
    others.push_back(allocate(a));
    found = others.back().data == first.data;
  }
  EXPECT_TRUE(found);
  for (const Block& block : others) memory_->deallocate(block);
  a.synchronize();
}

TEST_P(PoolStreams, ABlockThatWasUsedOnOthersIsOrdinaryTheNextTime) {
  const Stream a = make_stream(device_);
  const Block first = allocate(a);
  {
    const Stream b = make_stream(device_);
    memory_->used_on(first, b);
  }
  memory_->deallocate(first);
  memory_->trim(0);
  for (int i = 0; i < 3; ++i) {
    const Block block = allocate(a);
    EXPECT_EQ(memory_->stats().live_blocks, 1U);
    memory_->deallocate(block);
    EXPECT_EQ(memory_->stats().live_blocks, 0U);
    const Block again = allocate(a);
    EXPECT_EQ(again.data, block.data);
    memory_->deallocate(again);
  }
  EXPECT_EQ(memory_->audit(), "");
}

INSTANTIATE_TEST_SUITE_P(Of, PoolStreams, ::testing::Values(1000, 100'000, 1_MiB),
                         [](const auto& param) { return std::to_string(param.param) + "Bytes"; });

TEST(PoolStreams, UnderPressureThePoolWaitsInsteadOfFailing) {
  const Device device = make_sim({.capacity_bytes = 4_MiB, .background = false});
  const auto memory = pool(device);
  const Stream a = make_stream(device);
  const Stream b = make_stream(device);
  for (int round = 0; round < 20; ++round) {
    const Stream& one = round % 2 == 0 ? a : b;
    bool ran = false;
    const auto block = memory->try_allocate({.bytes = 3_MiB, .stream = one});
    ASSERT_TRUE(block) << "round " << round;
    one.enqueue([&ran] { ran = true; });
    memory->deallocate(*block);
    const auto other = memory->try_allocate({.bytes = 3_MiB, .stream = round % 2 == 0 ? b : a});
    ASSERT_TRUE(other) << "round " << round;
    EXPECT_TRUE(ran) << "it was handed out while the first stream was at work on it";
    memory->deallocate(*other);
    one.synchronize();
  }
  EXPECT_EQ(memory->audit(), "");
}

// What a stream is given after a free must not delay it: the free is marked on the stream when it happens.
TEST(PoolStreams, LaterWorkOfAStreamDoesNotDelayItsFrees) {
  const Device device = make_sim({.capacity_bytes = 4_MiB, .background = false});
  const auto memory = pool(device);
  const Stream a = make_stream(device);
  const Stream b = make_stream(device);
  memory->deallocate(memory->allocate({.bytes = 1_MiB, .stream = b}));  // from here on two streams use it
  const Block first = memory->allocate({.bytes = 3_MiB, .stream = a});
  bool before = false;
  bool after = false;
  a.enqueue([&] { before = true; });
  memory->deallocate(first);
  a.enqueue([&] { after = true; });
  const auto second = memory->try_allocate({.bytes = 3_MiB, .stream = b});
  ASSERT_TRUE(second);
  EXPECT_TRUE(before);
  EXPECT_FALSE(after) << "the pool waited for work that never touched the memory";
  memory->deallocate(*second);
  a.synchronize();
  EXPECT_EQ(memory->audit(), "");
}

TEST(PoolStreams, LaterWorkOfAnotherUserDoesNotDelayAFree) {
  const Device device = make_sim({.capacity_bytes = 4_MiB, .background = false});
  const auto memory = pool(device);
  const Stream a = make_stream(device);
  const Stream b = make_stream(device);
  for (const std::size_t bytes : {3_MiB, 2000UL}) {
    Block first = memory->allocate({.bytes = bytes, .stream = a});
    memory->used_on(first, b);
    memory->deallocate(first);
    bool after = false;
    b.enqueue([&] { after = true; });
    const auto second = memory->try_allocate({.bytes = 4_MiB, .stream = a});
    ASSERT_TRUE(second);
    EXPECT_FALSE(after) << "the pool waited for work that never touched the memory";
    memory->deallocate(*second);
    b.synchronize();
  }
  EXPECT_EQ(memory->audit(), "");
}

// A block that stays with its thread between two requests would be another stream's only behind all that follows.
TEST(PoolStreams, ABlockThatIsFreedOverAndOverWaitsForNoLaterWork) {
  for (const bool second_first : {true, false}) {
    const Device device = make_sim({.capacity_bytes = 4_MiB, .background = false});
    const auto memory = pool(device);
    const Stream a = make_stream(device);
    const Stream b = make_stream(device);
    if (second_first) memory->deallocate(memory->allocate({.bytes = 1_MiB, .stream = b}));
    for (int i = 0; i < 20; ++i) memory->deallocate(memory->allocate({.bytes = 3_MiB, .stream = a}));
    if (!second_first) memory->deallocate(memory->allocate({.bytes = 1_MiB, .stream = b}));
    memory->deallocate(memory->allocate({.bytes = 3_MiB, .stream = a}));
    bool later = false;
    a.enqueue([&] { later = true; });
    const auto block = memory->try_allocate({.bytes = 3_MiB, .stream = b});
    ASSERT_TRUE(block);
    EXPECT_FALSE(later) << second_first;
    memory->deallocate(*block);
    EXPECT_EQ(memory->audit(), "");
    a.synchronize();
    b.synchronize();
  }
}

// What was observed of a stream by others must not end the wait for its later frees.
TEST(PoolStreams, AFreeThatIsKnownToBeOverDoesNotEndTheWait) {
  const Device device = make_sim({.capacity_bytes = 4_MiB, .background = false});
  const auto memory = pool(device);
  const Stream a = make_stream(device);
  const Stream b = make_stream(device);
  memory->deallocate(memory->allocate({.bytes = 1_MiB, .stream = b}));
  memory->deallocate(memory->allocate({.bytes = 1_MiB, .stream = a}));
  a.synchronize();
  b.synchronize();
  bool ran = false;
  const Block first = memory->allocate({.bytes = 3_MiB, .stream = a});
  a.enqueue([&] { ran = true; });
  memory->deallocate(first);
  const auto second = memory->try_allocate({.bytes = 4_MiB, .stream = b});
  ASSERT_TRUE(second);
  EXPECT_TRUE(ran);
  memory->deallocate(*second);
  EXPECT_EQ(memory->audit(), "");
}

// A hold leaves the device alone, its streams included: what is freed meanwhile is marked later.
TEST(PoolStreams, AHoldMarksNoFree) {
  const Device device = make_sim({.capacity_bytes = 4_MiB, .background = false});
  const auto memory = pool(device);
  const Stream a = make_stream(device);
  const Stream b = make_stream(device);
  memory->deallocate(memory->allocate({.bytes = 1_MiB, .stream = b}));
  const Block first = memory->allocate({.bytes = 3_MiB, .stream = a});
  bool after = false;
  const std::uint64_t before = next_point();
  {
    const Hold held = memory->hold();
    memory->deallocate(first);
    EXPECT_EQ(next_point(), before) << "an event was recorded";
  }
  a.enqueue([&] { after = true; });
  const auto second = memory->try_allocate({.bytes = 3_MiB, .stream = b});
  ASSERT_TRUE(second);
  EXPECT_TRUE(after);
  memory->deallocate(*second);
}

// The oldest free is waited for first, and no other if it is enough.
TEST(PoolStreams, OnlyAsManyFreesAreWaitedForAsAreNeeded) {
  const Device device = make_sim({.capacity_bytes = 8_MiB, .background = false});
  const auto memory = pool(device);
  const std::array<Stream, 3> streams{make_stream(device), make_stream(device), make_stream(device)};
  std::array<Block, 2> blocks;
  std::array<bool, 2> ran{};
  for (const std::size_t i : {0U, 1U}) blocks[i] = memory->allocate({.bytes = 4_MiB, .stream = streams[i]});
  memory->deallocate_now(blocks[1]);
  blocks[1] = memory->allocate({.bytes = 4_MiB, .stream = streams[1]});
  for (const std::size_t i : {0U, 1U}) {
    streams[i].enqueue([&ran, i] { ran[i] = true; });
    memory->deallocate(blocks[i]);
  }
  const auto other = memory->try_allocate({.bytes = 4_MiB, .stream = streams[2]});
  ASSERT_TRUE(other);
  EXPECT_EQ(ran, (std::array{true, false}));
  memory->deallocate(*other);
  for (const Stream& stream : streams) stream.synchronize();
}

// Others may free as long as they like: a request that cannot be served waits for what was freed before it.
TEST(PoolStreams, ARequestThatCannotBeServedEndsWhileOthersFree) {
  const Device device = make_sim({.capacity_bytes = 64_MiB});
  const auto memory = pool(device, {.limit_bytes = 8_MiB});
  std::atomic<bool> stop = false;
  const auto work = [&] {
    const Stream stream = make_stream(device);
    while (!stop) {
      const auto block = memory->try_allocate({.bytes = 1_MiB, .stream = stream});
      stream.enqueue([] {});
      if (block) memory->deallocate(*block);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // else sanitizers serve nobody else
    }
    stream.synchronize();
  };
  std::thread first(work);
  std::thread second(work);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(memory->try_allocate({.bytes = 9_MiB}));
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(memory->audit(), "");
}

TEST(PoolStreams, APoolThatMustNotWaitRefuses) {
  const Device device = make_sim({.capacity_bytes = 4_MiB, .background = false});
  const auto memory = pool(device, {.wait_for_streams = false});
  const Stream a = make_stream(device);
  const Stream b = make_stream(device);
  bool ran = false;
  const Block first = memory->allocate({.bytes = 3_MiB, .stream = a});
  a.enqueue([&ran] { ran = true; });
  memory->deallocate(first);
  EXPECT_FALSE(memory->try_allocate({.bytes = 3_MiB, .stream = b}));
  EXPECT_FALSE(ran);
  a.synchronize();
  const auto now = memory->try_allocate({.bytes = 3_MiB, .stream = b});
  ASSERT_TRUE(now);
  memory->deallocate(*now);
}

TEST(PoolStreams, SmallBlocksOfOtherStreamsAreWaitedForToo) {
  const Device device = make_sim({.capacity_bytes = 2_MiB, .background = false});
  const auto memory = pool(device);
  const Stream a = make_stream(device);
  std::vector<Block> small;
  while (const auto block = memory->try_allocate({.bytes = 2000, .stream = a})) small.push_back(*block);
  bool ran = false;
  a.enqueue([&] { ran = true; });
  for (const Block& block : small) memory->deallocate(block);
  const auto large = memory->try_allocate({.bytes = 2_MiB, .stream = make_stream(device)});
  EXPECT_TRUE(large);
  EXPECT_TRUE(ran);
  if (large) memory->deallocate(*large);
  EXPECT_EQ(memory->audit(), "");
}

// A pool must not release its range while a stream still works on memory that was freed in it.
TEST(PoolStreams, APoolEndsAfterTheWorkOnWhatWasFreed) {
  const Device device = make_sim({.background = false});
  const Stream a = make_stream(device);
  auto memory = pool(device);
  std::array<std::byte, 16> seen{};
  const std::byte value{7};
  const Block block = memory->allocate({.bytes = 1_MiB, .stream = a});
  ASSERT_TRUE(memory->backend().fill(block.data, block.bytes, {&value, 1}, a).ok());
  const Transfer look{.target = seen.data(), .target_device = {}, .source = block.data, .source_device = device, .bytes = seen.size()};
  ASSERT_TRUE(memory->backend().copy(look, a).ok());
  memory->deallocate(block);
  memory.reset();
  EXPECT_NO_THROW(a.synchronize());
  EXPECT_EQ(seen[15], value);
}

}  // namespace
}  // namespace berth::testing

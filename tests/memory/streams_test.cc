// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "support/everything.h"
#include "support/heap_faults.h"
#include "support/misuse_log.h"

// Memory that streams pass on to one another: by waits that were issued, and when several streams use a block.
// On a simulated device whose streams make no progress until something waits for them.
namespace berth::testing {
namespace {

class StrategyStreams : public ::testing::TestWithParam<const char*> {
 protected:
  StrategyStreams()
      : device_(make_sim({.capacity_bytes = 64_MiB, .page_bytes = 64_KiB, .background = false})),
        memory_(make_allocator(GetParam(), device_)),
        a_(make_stream(device_)),
        b_(make_stream(device_)),
        c_(make_stream(device_)) {}
  ~StrategyStreams() override {
    for (const Stream& stream : {a_, b_, c_}) stream.synchronize();
  }

  Block allocate(const Stream& stream, std::size_t bytes = 300'000) { return memory_->allocate({.bytes = bytes, .stream = stream}); }
  // Keeps a stream busy until something waits for it: a query runs no host function.
  static void keep_busy(const Stream& stream) {
    stream.enqueue([] {});
  }
  std::size_t committed() const { return memory_->stats().committed_bytes; }

  Device device_;
  std::shared_ptr<Allocator> memory_;
  Stream a_, b_, c_;
};

class ReusingStreams : public StrategyStreams {};

TEST_P(ReusingStreams, AWaitThatWasIssuedPassesMemoryOnAtOnce) {
  const Block first = allocate(a_);
  keep_busy(a_);
  memory_->deallocate(first);
  b_.wait(a_.record());
  const std::size_t before = committed();
  const Block second = allocate(b_);
  EXPECT_EQ(second.data, first.data);
  EXPECT_EQ(committed(), before);
  EXPECT_GT(sim_control(device_).pending_work(), 0U) << "nobody had to wait";
  keep_busy(b_);
  memory_->deallocate(second);
  EXPECT_NE(allocate(c_).data, first.data) << "c comes after neither";
  EXPECT_EQ(memory_->audit(), "");
}

TEST_P(ReusingStreams, AWaitForAnEventBeforeTheFreeProvesNothing) {
  const Block first = allocate(a_);
  const Event early = a_.record();
  keep_busy(a_);
  memory_->deallocate(first);
  b_.wait(early);
  EXPECT_NE(allocate(b_).data, first.data);
}

TEST_P(ReusingStreams, WaitsPassMemoryOnFromStreamToStream) {
  const Block first = allocate(a_);
  keep_busy(a_);
  memory_->deallocate(first);
  b_.wait(a_.record());
  c_.wait(b_.record());
  EXPECT_EQ(allocate(c_).data, first.data);
}

TEST_P(ReusingStreams, WhatAHostThreadHasWaitedForIsEveryones) {
  const Block first = allocate(a_);
  keep_busy(a_);
  memory_->deallocate(first);
  a_.synchronize();
  keep_busy(a_);  // so that a query of the stream itself would not help
  const Hold held = memory_->hold();
  const auto second = memory_->try_allocate({.bytes = 300'000, .stream = b_});
  ASSERT_TRUE(second) << "it is cached, and known to be free";
  EXPECT_EQ(second->data, first.data);
}

TEST_P(ReusingStreams, AHoldDoesNotStandInTheWayOfWhatIsKnown) {
  const Block first = allocate(a_);
  keep_busy(a_);
  memory_->deallocate(first);
  b_.wait(a_.record());
  const Hold held = memory_->hold();
  const auto second = memory_->try_allocate({.bytes = 300'000, .stream = b_});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->data, first.data);
}

TEST_P(ReusingStreams, ABlockThatAnotherStreamUsesIsNotReusedBeforeThatIsDone) {
  const Block first = allocate(a_);
  memory_->used_on(first, b_);
  keep_busy(b_);
  memory_->deallocate(first);
  EXPECT_EQ(memory_->stats().in_use_bytes, 0U);
  EXPECT_GE(memory_->stats().cached_bytes, 300'000U) << "it counts as cached";
  for (const Stream& stream : {a_, b_, c_}) EXPECT_NE(allocate(stream).data, first.data);
  EXPECT_EQ(memory_->audit(), "");
  b_.synchronize();
  EXPECT_EQ(allocate(a_).data, first.data);
  EXPECT_EQ(memory_->audit(), "");
}

INSTANTIATE_TEST_SUITE_P(Of, ReusingStreams, ::testing::Values("pool", "rounded", "exact"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(StrategyStreams, EveryStreamThatUsesABlockIsWaitedFor) {
  const Block block = allocate(a_);
  int ran = 0;
  for (const Stream& stream : {a_, b_, c_}) {
    memory_->used_on(block, stream);
    memory_->used_on(block, stream);  // the second call has no effect
    stream.enqueue([&] { ++ran; });
  }
  memory_->deallocate_now(block);
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(committed(), 0U);
  EXPECT_EQ(memory_->stats().live_blocks, 0U);
  EXPECT_EQ(memory_->audit(), "");
}

TEST_P(StrategyStreams, AlsoWhenTheHoldEnds) {
  const Block block = allocate(a_);
  bool ran = false;
  memory_->used_on(block, b_);
  b_.enqueue([&] { ran = true; });
  {
    const Hold held = memory_->hold();
    memory_->deallocate_now(block);
    EXPECT_FALSE(ran) << "a hold waits for nothing";
  }
  EXPECT_TRUE(ran);
  EXPECT_EQ(committed(), 0U);
}

TEST_P(StrategyStreams, FreedMemoryStaysWhileAnyOfItsStreamsIsAtWork) {
  const std::byte value{7};
  std::array<std::byte, 16> seen{};
  const Block block = allocate(a_);
  memory_->used_on(block, b_);
  ASSERT_TRUE(memory_->backend().fill(block.data, block.bytes, {&value, 1}, a_).ok());
  b_.wait(a_.record());
  const Transfer look{.target = seen.data(), .target_device = {}, .source = block.data, .source_device = device_, .bytes = seen.size()};
  ASSERT_TRUE(memory_->backend().copy(look, b_).ok());
  memory_->deallocate(block);
  memory_->trim(0);
  memory_.reset();
  EXPECT_NO_THROW(b_.synchronize());
  EXPECT_EQ(seen[15], value);
}

TEST_P(StrategyStreams, AStreamMayBeDroppedWhileABlockWaitsForIt) {
  const Block block = allocate(a_);
  {
    const Stream other = make_stream(device_);
    memory_->used_on(block, other);
    const std::byte value{1};
    ASSERT_TRUE(memory_->backend().fill(block.data, block.bytes, {&value, 1}, other).ok());
  }
  memory_->deallocate(block);
  EXPECT_EQ(memory_->audit(), "");
  for (int i = 0; i < 100 && committed() > 0; ++i) memory_->trim(0);
  EXPECT_EQ(committed(), 0U);
}

TEST_P(StrategyStreams, UnderPressureMemoryIsWaitedForOnTheOtherStreamToo) {
  const Block block = memory_->allocate({.bytes = 40_MiB, .stream = a_});
  bool ran = false;
  memory_->used_on(block, b_);
  b_.enqueue([&] { ran = true; });
  memory_->deallocate(block);
  const auto next = memory_->try_allocate({.bytes = 40_MiB, .stream = c_});
  EXPECT_TRUE(next);
  EXPECT_TRUE(ran);
}

// A host function that allocates more than is free must not wait for its own stream: that would be a deadlock.
TEST_P(StrategyStreams, WorkDoesNotWaitForItsOwnStream) {
  const Block block = memory_->allocate({.bytes = 40_MiB, .stream = a_});
  bool served = true;
  a_.enqueue([&] { served = memory_->try_allocate({.bytes = 40_MiB, .stream = b_}).has_value(); });
  memory_->deallocate(block);
  a_.synchronize();
  EXPECT_FALSE(served) << "it was still in use by the work that asked";
  EXPECT_TRUE(memory_->try_allocate({.bytes = 40_MiB, .stream = b_}));
}

TEST_P(StrategyStreams, WrongUsesAreReportedAndChangeNothing) {
  const MisuseLog log;
  const auto other = make_allocator(GetParam(), device_);
  const Block elsewhere = other->allocate({.bytes = 1000});
  const Block block = allocate(a_);
  Block wrong = block;
  wrong.bytes += 1;
  memory_->used_on(wrong, b_);
  memory_->used_on(elsewhere, b_);
  memory_->used_on(Block(), b_);  // of no bytes: has no effect
  memory_->used_on(block, {});    // no stream: has no effect
  memory_->deallocate(block);
  memory_->used_on(block, b_);
  EXPECT_EQ(log.reported(), (std::vector{MisuseKind::size_mismatch, MisuseKind::foreign_free, MisuseKind::double_free}));
  other->deallocate(elsewhere);
  EXPECT_EQ(memory_->audit(), "");
}

TEST_P(StrategyStreams, WithoutAHeapUsedOnThrows) {
  const Block block = allocate(a_);
  std::uint64_t n = 1;
  for (bool happened = true; happened; ++n) {
    const FailNthNew fault(n);
    try {
      memory_->used_on(block, b_);
    } catch (const std::bad_alloc&) {
    }
    happened = fault.happened();
  }
  EXPECT_GT(n, 2U);
  keep_busy(b_);
  memory_->deallocate(block);
  EXPECT_GE(committed(), 300'000U) << "the last call was heard";
  EXPECT_EQ(memory_->audit(), "");
}

INSTANTIATE_TEST_SUITE_P(Of, StrategyStreams, ::testing::Values("pool", "rounded", "exact", "direct"),
                         [](const auto& param) { return std::string(param.param); });

TEST(UsedOn, ReachesTheStrategyThroughAdaptorsBuffersAndStorages) {
  const Device device = make_sim({.background = false});
  const auto memory = limit(track(pool(device)), 8_MiB);
  const Stream a = make_stream(device);
  const Stream b = make_stream(device);
  for (const bool as_buffer : {true, false}) {
    void* data = nullptr;
    {
      const Storage x = empty({300'000}, DType::u8, memory, {.stream = a});
      data = x.data_ptr();
      as_buffer ? x.buffer().used_on(b) : x.used_on(b);
      b.enqueue([] {});
    }
    EXPECT_NE(empty({300'000}, DType::u8, memory, {.stream = a}).data_ptr(), data);
    b.synchronize();
    a.synchronize();
    memory->release_cached();
  }
  std::array<std::byte, 8> outside{};
  const Buffer borrowed = wrap_buffer(outside.data(), outside.size(), "cpu");
  EXPECT_NO_THROW(borrowed.used_on(b)) << "memory from outside is its owner's to keep";
  EXPECT_NO_THROW(Buffer().used_on(b));
}

class ArenaStreams : public ::testing::Test {
 protected:
  ArenaStreams() : device_(make_sim({.background = false})), memory_(arena(device_, 1_MiB)) {}
  Device device_;
  std::shared_ptr<Arena> memory_;
};

TEST_F(ArenaStreams, WhatWasResetIsUsedAgainAtOnceOnItsStreamAndOnThoseThatComeAfter) {
  const Stream a = make_stream(device_);
  const Stream b = make_stream(device_);
  bool ran = false;
  memory_->deallocate(memory_->allocate({.bytes = 1000, .stream = a}));
  a.enqueue([&] { ran = true; });
  memory_->reset();
  memory_->deallocate(memory_->allocate({.bytes = 1000, .stream = a}));
  EXPECT_FALSE(ran);
  memory_->reset();
  b.wait(a.record());
  memory_->deallocate(memory_->allocate({.bytes = 1000, .stream = b}));
  EXPECT_FALSE(ran) << "a wait is as good";
  b.synchronize();
}

TEST_F(ArenaStreams, AnotherStreamWaitsForAllThatUsedIt) {
  const Stream a = make_stream(device_);
  const Stream b = make_stream(device_);
  const Stream c = make_stream(device_);
  int ran = 0;
  const Block block = memory_->allocate({.bytes = 1000, .stream = a});
  memory_->used_on(block, b);
  a.enqueue([&] { ++ran; });
  b.enqueue([&] { ++ran; });
  memory_->deallocate(block);
  memory_->trim(0);
  memory_->reset();
  memory_->trim(0);
  EXPECT_GT(memory_->stats().committed_bytes, 0U) << "they may still be at work";
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(memory_->allocate({.bytes = 1000, .stream = c}).data, block.data);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(memory_->audit(), "");
}

TEST_F(ArenaStreams, ARequestInsideTheWorkOfSuchAStreamIsRefused) {
  const Stream a = make_stream(device_);
  memory_->deallocate(memory_->allocate({.bytes = 1000, .stream = a}));
  bool served = true;
  a.enqueue([&] { served = memory_->try_allocate({.bytes = 1000}).has_value(); });
  memory_->reset();
  a.synchronize();
  EXPECT_FALSE(served);
  EXPECT_TRUE(memory_->try_allocate({.bytes = 1000}));
}

TEST_F(ArenaStreams, AnArenaEndsAfterTheWorkInIt) {
  const Stream a = make_stream(device_);
  const Stream b = make_stream(device_);
  const std::byte value{7};
  const Block block = memory_->allocate({.bytes = 1000, .stream = a});
  memory_->used_on(block, b);
  ASSERT_TRUE(memory_->backend().fill(block.data, block.bytes, {&value, 1}, a).ok());
  ASSERT_TRUE(memory_->backend().fill(block.data, block.bytes, {&value, 1}, b).ok());
  memory_->deallocate(block);
  memory_.reset();
  EXPECT_NO_THROW(a.synchronize());
  EXPECT_NO_THROW(b.synchronize());
}

}  // namespace
}  // namespace berth::testing

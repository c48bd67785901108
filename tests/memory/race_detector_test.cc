// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/race_detector.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/everything.h"

// Race detection: it reports pairs of streams that nothing orders, and nothing else.
namespace berth::testing {
namespace {

struct Pair {
  std::uint64_t stream;
  std::uint64_t other;
  friend bool operator==(const Pair&, const Pair&) = default;
};
std::vector<Pair>& pairs() {
  static std::vector<Pair> list;
  return list;
}
using Pairs = std::vector<Pair>;

CopyOptions later(const Stream& stream) { return {.stream = stream, .non_blocking = true}; }

class StreamCheck : public ::testing::Test {
 protected:
  StreamCheck()
      : before_(set_misuse_handler([](const Misuse& misuse) noexcept {
          EXPECT_EQ(misuse.kind, MisuseKind::unordered_streams);
          pairs().push_back({misuse.stream_id, misuse.other_stream_id});
        })),
        device_(make_sim({.background = false})),
        memory_(pool(device_)),
        a_(make_stream(device_)),
        b_(make_stream(device_)) {
    pairs().clear();
    set_race_detection(RaceDetection::on);
  }
  ~StreamCheck() override {
    a_.synchronize();
    b_.synchronize();
    set_race_detection(RaceDetection::off);
    set_misuse_handler(before_);
  }

  Storage make(const Stream& stream = {}) const { return empty({1000}, DType::f32, memory_, {.stream = stream}); }

  MisuseHandler before_;
  Device device_;
  std::shared_ptr<Allocator> memory_;
  Stream a_, b_;
};

TEST_F(StreamCheck, ReportsTwoStreamsThatTouchABlockInNoOrder) {
  const Storage x = make(a_);
  x.fill(1, later(a_));
  EXPECT_EQ(pairs(), Pairs());
  x.fill(2, later(b_));
  EXPECT_EQ(pairs(), (Pairs{{b_.id(), a_.id()}}));
}

TEST_F(StreamCheck, ReportsReadersOfWhatIsBeingWrittenAndTheOtherWayRound) {
  const Storage x = make(a_);
  const Storage y = make(a_);
  const Storage z = make(b_);
  x.fill(1, later(a_));
  z.copy_from(x, later(b_));
  EXPECT_EQ(pairs(), (Pairs{{b_.id(), a_.id()}}));
  pairs().clear();
  y.copy_from(z, later(a_));
  EXPECT_EQ(pairs(), (Pairs{{a_.id(), b_.id()}})) << "z is still being written";
}

TEST_F(StreamCheck, FindsNothingWrongWithWaitsReadersAndAHostThatWaited) {
  const Storage x = make(a_);
  const Storage y = make(a_);
  const Storage z = make(b_);
  x.fill(1, later(a_));
  x.fill(2, later(a_));  // a stream is ordered with itself
  b_.wait(a_.record());
  z.copy_from(x, later(b_));
  y.copy_from(x, later(a_));  // both only read it
  EXPECT_EQ(pairs(), Pairs());
  a_.synchronize();
  b_.synchronize();
  x.fill(0);
  y.copy_from(z);
  EXPECT_EQ(pairs(), Pairs());
}

TEST_F(StreamCheck, DisjointPartsMayBelongToDifferentStreams) {
  const Storage x = make(a_);
  x.slice(0, 0, 500).fill(1, later(a_));
  x.slice(0, 500, 1000).fill(2, later(b_));
  EXPECT_EQ(pairs(), Pairs());
  x.slice(0, 400, 600).fill(3, later(a_));
  EXPECT_EQ(pairs(), (Pairs{{a_.id(), b_.id()}}));
  x.used_on(b_);
}

TEST_F(StreamCheck, ReportsAHostThatDidNotWait) {
  const Storage x = make(a_);
  x.fill(1, later(a_));
  x.fill(2);
  EXPECT_EQ(pairs(), (Pairs{{0, a_.id()}}));
}

TEST_F(StreamCheck, ReportsAForgottenUseAtTheFree) {
  for (const bool says_so : {false, true}) {
    pairs().clear();
    const Block block = memory_->allocate({.bytes = 4096, .stream = a_});
    fill_bytes(block.data, device_, 1, 100, later(b_));
    if (says_so) memory_->used_on(block, b_);
    memory_->deallocate(block);
    EXPECT_EQ(pairs(), says_so ? Pairs() : (Pairs{{a_.id(), b_.id()}}));
  }
}

TEST_F(StreamCheck, ReportsABlockOfNoStreamThatIsFreedUnderWork) {
  const Block block = memory_->allocate({.bytes = 4096});
  fill_bytes(block.data, device_, 1, 100, later(b_));
  memory_->deallocate(block);
  EXPECT_EQ(pairs(), (Pairs{{0, b_.id()}}));
}

TEST_F(StreamCheck, AFreeAfterAWaitIsInOrder) {
  const Block block = memory_->allocate({.bytes = 4096, .stream = a_});
  fill_bytes(block.data, device_, 1, 100, later(b_));
  a_.wait(b_.record());
  memory_->deallocate(block);
  const Block other = memory_->allocate({.bytes = 4096, .stream = a_});
  fill_bytes(other.data, device_, 1, 100, {.stream = b_});  // blocking: the host has waited
  memory_->deallocate(other);
  EXPECT_EQ(pairs(), Pairs());
}

TEST_F(StreamCheck, WhatACopyKeepsAliveIsFreedInOrder) {
  {
    const Storage x = make();
    x.fill(1, later(b_));
  }
  b_.synchronize();
  EXPECT_EQ(pairs(), Pairs()) << "the work itself was the last to have it";
}

TEST_F(StreamCheck, ANewBlockAtAnOldAddressIsANewBlock) {
  const Block first = memory_->allocate({.bytes = 300'000, .stream = a_});
  fill_bytes(first.data, device_, 1, 100, later(a_));
  memory_->deallocate(first);
  b_.wait(a_.record());
  const Block second = memory_->allocate({.bytes = 300'000, .stream = b_});
  ASSERT_EQ(second.data, first.data);
  fill_bytes(second.data, device_, 1, 100, later(b_));
  memory_->deallocate(second);
  EXPECT_EQ(pairs(), Pairs());
}

TEST_F(StreamCheck, SeesNothingWhileItIsOff) {
  set_race_detection(RaceDetection::off);
  const Storage x = make(a_);
  x.fill(1, later(a_));
  x.fill(2, later(b_));
  x.used_on(b_);
  EXPECT_EQ(race_detection(), RaceDetection::off);
  EXPECT_EQ(pairs(), Pairs());
  set_race_detection(RaceDetection::on);
  x.fill(2, later(a_));
  EXPECT_EQ(pairs(), Pairs()) << "of blocks from before it knows nothing";
}

}  // namespace
}  // namespace berth::testing

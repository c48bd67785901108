// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "support/everything.h"

// Pages that a stream still works on move to where the same stream needs them, and nothing waits. On a
// simulated device that runs no work before something waits for it, page by page and in pieces.
namespace berth::testing {
namespace {

constexpr std::size_t kEchoLimit = 8_MiB;

class PoolEchoes : public ::testing::TestWithParam<std::size_t> {
 protected:
  PoolEchoes()
      : device_(make_sim({.capacity_bytes = 64_MiB, .page_bytes = 1_MiB, .piece_bytes = GetParam(), .background = false})),
        memory_(pool(device_, {.limit_bytes = kEchoLimit})),
        stream_(make_stream(device_)) {}

  // Four blocks fill the pool; two that are not adjacent are freed, with the work on all of them still pending.
  void make_busy_holes() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i] = memory_->allocate({.bytes = kEchoLimit / 4, .stream = stream_});
      fill(blocks_[i], static_cast<unsigned char>(i + 1));
    }
    ran_ = false;
    stream_.enqueue([this] { ran_ = true; });
    for (const std::size_t i : {0U, 2U}) {
      fill(blocks_[i], 77);
      memory_->deallocate(blocks_[i]);
    }
  }

  void fill(const Block& block, unsigned char value) {
    const std::byte pattern{value};
    ASSERT_TRUE(memory_->backend().fill(block.data, block.bytes, {&pattern, 1}, stream_).ok());
  }

  void expect_filled(const Block& block, unsigned char value) {
    std::vector<unsigned char> bytes(block.bytes);
    ASSERT_TRUE(memory_->backend().copy({bytes.data(), {}, block.data, device_, block.bytes}, {}).ok());
    for (const unsigned char byte : bytes) ASSERT_EQ(byte, value);
  }

  std::uint64_t begun() const { return sim_control(device_).count(SimOperation::begin_move); }
  std::uint64_t ended() const { return sim_control(device_).count(SimOperation::end_move); }

  // Frees what the tests leave live.
  void TearDown() override {
    if (memory_ == nullptr) return;
    for (const std::size_t i : {1U, 3U}) memory_->deallocate(blocks_[i]);
    stream_.synchronize();
    memory_->trim(0);
    EXPECT_EQ(memory_->audit(), "");
    EXPECT_EQ(memory_->stats().committed_bytes, 0U);
    EXPECT_EQ(sim_control(device_).committed_bytes(), 0U);
  }

  Device device_;
  std::shared_ptr<Allocator> memory_;
  Stream stream_;
  bool ran_ = false;
  std::array<Block, 4> blocks_;
};

TEST_P(PoolEchoes, ARequestTakesPagesThatItsOwnStreamIsStillAtWorkOn) {
  make_busy_holes();
  const Block late = memory_->allocate({.bytes = kEchoLimit / 2, .stream = stream_});
  EXPECT_FALSE(ran_) << "the stream was waited for";
  EXPECT_GT(begun(), 0U);
  EXPECT_EQ(ended(), 0U) << "its work was cut off";
  EXPECT_EQ(memory_->stats().committed_bytes, kEchoLimit);
  EXPECT_EQ(memory_->audit(), "");
  fill(late, 9);
  stream_.synchronize();
  expect_filled(late, 9);
  expect_filled(blocks_[1], 2);
  expect_filled(blocks_[3], 4);
  memory_->deallocate(late);
  memory_->trim(SIZE_MAX);
  EXPECT_EQ(ended(), begun()) << "the old addresses were not let go of";
}

TEST_P(PoolEchoes, AnotherStreamDoesNotGetWhatIsLeftOfThem) {
  make_busy_holes();
  const Block late = memory_->allocate({.bytes = kEchoLimit / 2 - 700_KiB, .stream = stream_});
  EXPECT_FALSE(ran_);
  EXPECT_GT(begun(), 0U);
  const Stream other = make_stream(device_);
  const Block small = memory_->allocate({.bytes = 600_KiB, .stream = other});
  EXPECT_TRUE(ran_) << "it was handed out while the first stream was at work on it";
  memory_->deallocate(small);
  memory_->deallocate(late);
  other.synchronize();
}

TEST_P(PoolEchoes, AnotherStreamWaitsForTheWorkInstead) {
  make_busy_holes();
  const Stream other = make_stream(device_);
  const Block late = memory_->allocate({.bytes = kEchoLimit / 2, .stream = other});
  EXPECT_TRUE(ran_);
  EXPECT_EQ(begun(), 0U);
  memory_->deallocate(late);
  other.synchronize();
}

TEST_P(PoolEchoes, WhereThatFailsTheRequestWaits) {
  make_busy_holes();
  sim_control(device_).fail_always(SimOperation::begin_move);
  const Block late = memory_->allocate({.bytes = kEchoLimit / 2, .stream = stream_});
  EXPECT_TRUE(ran_);
  sim_control(device_).clear_faults();
  EXPECT_EQ(memory_->audit(), "");
  fill(late, 9);
  stream_.synchronize();
  expect_filled(late, 9);
  expect_filled(blocks_[1], 2);
  EXPECT_EQ(sim_control(device_).committed_bytes(), memory_->stats().committed_bytes);
  memory_->deallocate(late);
}

TEST_P(PoolEchoes, MoreThanOnceBeforeTheWorkIsDone) {
  make_busy_holes();
  const Block late = memory_->allocate({.bytes = kEchoLimit / 2, .stream = stream_});
  fill(late, 8);
  const std::uint64_t before = begun();
  for (const std::size_t i : {1U, 3U}) {
    fill(blocks_[i], 78);
    memory_->deallocate(blocks_[i]);
  }
  const Block later = memory_->allocate({.bytes = kEchoLimit / 2, .stream = stream_});
  EXPECT_FALSE(ran_);
  EXPECT_GT(begun(), before);
  EXPECT_EQ(memory_->audit(), "");
  fill(later, 9);
  stream_.synchronize();
  expect_filled(late, 8);
  expect_filled(later, 9);
  blocks_[1] = late;
  blocks_[3] = later;
}

// A stream that lags far behind uses up the addresses. The pool then waits for it, and they become free.
TEST_P(PoolEchoes, WhereAddressesRunOutTheStreamIsWaitedFor) {
  make_busy_holes();
  for (int round = 0; round < 100; ++round) {
    const Block late = memory_->allocate({.bytes = kEchoLimit / 2, .stream = stream_});
    for (const std::size_t i : {1U, 3U}) memory_->deallocate(blocks_[i]);
    const Block later = memory_->allocate({.bytes = kEchoLimit / 2, .stream = stream_});
    memory_->deallocate(late);
    for (const std::size_t i : {0U, 1U}) blocks_[i] = memory_->allocate({.bytes = kEchoLimit / 4, .stream = stream_});
    memory_->deallocate(later);
    for (const std::size_t i : {2U, 3U}) blocks_[i] = memory_->allocate({.bytes = kEchoLimit / 4, .stream = stream_});
    fill(blocks_[1], 5);
    stream_.enqueue([] {});
    for (const std::size_t i : {0U, 2U}) memory_->deallocate(blocks_[i]);
  }
  EXPECT_GT(begun(), 100U);
  EXPECT_GT(ended(), 0U);
  stream_.synchronize();
  expect_filled(blocks_[1], 5);
}

// The id of a destroyed stream says nothing about a new stream that has the same id.
TEST_P(PoolEchoes, AStreamThatHasTheNumberOfAnotherIsNotTakenForThat) {
  {
    const Stream gone = make_stream(device_);
    memory_->deallocate(memory_->allocate({.bytes = 1000, .stream = gone}));
    gone.synchronize();
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i] = memory_->allocate({.bytes = kEchoLimit / 4 - (i == 3 ? 1_MiB : 0), .stream = stream_});
    fill(blocks_[i], static_cast<unsigned char>(i + 1));
  }
  // Nothing was recorded or enqueued since the first stream was destroyed.
  for (const std::size_t i : {0U, 2U}) memory_->deallocate(blocks_[i]);
  const Block late = memory_->allocate({.bytes = kEchoLimit / 2 - 700_KiB, .stream = stream_});
  if (GetParam() == 0) {  // with pieces as long as the blocks, two of them suffice nowhere
    EXPECT_GT(begun(), 0U);
  }
  (void)memory_->try_allocate({.bytes = kEchoLimit / 2, .stream = stream_});  // reaches the device, and is refused
  EXPECT_EQ(memory_->audit(), "");
  fill(late, 9);
  EXPECT_NO_THROW(stream_.synchronize()) << "its memory was taken from under the work";
  expect_filled(late, 9);
  memory_->deallocate(late);
}

TEST_P(PoolEchoes, StayWhileTheDeviceIsHeld) {
  make_busy_holes();
  Block late = memory_->allocate({.bytes = kEchoLimit / 2 - 700_KiB, .stream = stream_});
  stream_.synchronize();
  memory_->deallocate(memory_->allocate({.bytes = 1000}));  // the pool notices that the work is done
  const std::uint64_t before = ended();
  {
    const Hold hold = memory_->hold();
    (void)memory_->try_grow(late, kEchoLimit / 2 - 600_KiB);
    EXPECT_EQ(ended(), before);
  }
  memory_->deallocate(late);
}

TEST_P(PoolEchoes, APoolEndsWithEchoesAndAfterTheWork) {
  make_busy_holes();
  const Block late = memory_->allocate({.bytes = kEchoLimit / 2, .stream = stream_});
  EXPECT_GT(begun(), 0U);
  memory_->deallocate(late);
  for (const std::size_t i : {1U, 3U}) memory_->deallocate(blocks_[i]);
  memory_ = nullptr;
  EXPECT_FALSE(ran_);
  EXPECT_EQ(sim_control(device_).committed_bytes(), kEchoLimit) << "the work still needs it";
  stream_.synchronize();
  EXPECT_EQ(sim_control(device_).committed_bytes(), 0U);
  EXPECT_EQ(sim_control(device_).reserved_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(With, PoolEchoes, ::testing::Values(std::size_t{0}, 2_MiB),
                         [](const auto& param) { return std::string(param.param == 0 ? "Pages" : "Pieces"); });

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/arena.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

TEST(Arena, ResetMakesRoomAgain) {
  for (const char* device : {"cpu", "sim:0"}) {
    const auto scratch = arena(device, 1_MiB);
    void* first = nullptr;
    for (int round = 0; round < 5; ++round) {
      const Block block = scratch->allocate({.bytes = 900000});
      if (first == nullptr) first = block.data;
      EXPECT_EQ(block.data, first) << "each round begins at the start";
      EXPECT_FALSE(scratch->try_allocate({.bytes = 900000}));
      scratch->deallocate(block);
      EXPECT_FALSE(scratch->try_allocate({.bytes = 900000})) << "a dead block's bytes wait for the reset";
      scratch->reset();
    }
  }
}

TEST(Arena, ResetToAMarkKeepsWhatCameBefore) {
  const auto scratch = arena("cpu", 1_MiB);
  const Storage kept = full({1000}, 7, DType::i32, scratch);
  const ArenaMark mark = scratch->mark();
  { const Storage gone = zeros({50000}, DType::f32, scratch); }
  scratch->reset(mark);
  EXPECT_EQ(scratch->stats().in_use_bytes, 4000U);
  const Storage next = zeros({1000}, DType::i32, scratch);
  EXPECT_EQ(kept.item<std::int32_t>({999}), 7);
}

TEST(Arena, ResetIsRefusedWhileBlocksLive) {
  const auto scratch = arena("cpu", 1_MiB);
  const Storage x = full({4}, 1, DType::i32, scratch);
  EXPECT_ERROR(scratch->reset(), AccessError, ErrorCode::busy);
  EXPECT_EQ(x.item<std::int32_t>({0}), 1);
  const ArenaMark mark = scratch->mark();
  scratch->reset(mark);
}

TEST(Arena, AMarkFromBeforeAResetIsRefused) {
  const auto scratch = arena("cpu", 1_MiB);
  scratch->deallocate(scratch->allocate({.bytes = 1000}));
  const ArenaMark mark = scratch->mark();
  scratch->reset();
  EXPECT_ERROR(scratch->reset(mark), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Arena, CommitsAsItGrowsAndGivesBackOnTrim) {
  const Device device = make_sim({.capacity_bytes = 1_MiB, .page_bytes = 4096});
  SimControl& control = sim_control(device);
  {
    const auto scratch = arena(device, 64_MiB);
    EXPECT_EQ(control.committed_bytes(), 0U) << "addresses are not memory";
    scratch->deallocate(scratch->allocate({.bytes = 100000}));
    EXPECT_EQ(control.committed_bytes(), 102400U);
    scratch->release_cached();
    EXPECT_EQ(control.committed_bytes(), 0U) << "nothing is live";
    scratch->reset();
    scratch->deallocate(scratch->allocate({.bytes = 100000}));
    scratch->trim(10000);
    EXPECT_EQ(control.committed_bytes(), 12288U);
    scratch->release_cached();
    EXPECT_EQ(control.committed_bytes(), 0U);
    scratch->reserve(500000);
    EXPECT_GE(control.committed_bytes(), 500000U);
    EXPECT_THROW(scratch->reserve(2_MiB), OutOfMemory) << "the device is smaller than the arena";
    EXPECT_EQ(scratch->audit(), "");
  }
  EXPECT_EQ(control.committed_bytes(), 0U);
  EXPECT_EQ(control.reserved_bytes(), 0U);
}

TEST(Arena, GivesBackWhatIsBehindTheLastLiveBlock) {
  const Device device = make_sim({.capacity_bytes = 1_MiB, .page_bytes = 4096});
  SimControl& control = sim_control(device);
  const auto scratch = arena(device, 64_MiB);
  const Block a = scratch->allocate({.bytes = 65536});
  const Block b = scratch->allocate({.bytes = 65536});
  const ArenaMark before_c = scratch->mark();
  const Block c = scratch->allocate({.bytes = 65536});
  scratch->deallocate_now(a);
  EXPECT_EQ(control.committed_bytes(), 3 * 65536U) << "others are behind it";
  scratch->deallocate(c);
  scratch->release_cached();
  EXPECT_EQ(control.committed_bytes(), 2 * 65536U);
  const Block d = scratch->allocate({.bytes = 65536});
  EXPECT_EQ(static_cast<std::byte*>(d.data) - static_cast<std::byte*>(c.data), 65536) << "dead bytes are reused only after a reset";
  EXPECT_EQ(scratch->audit(), "");
  scratch->deallocate_now(d);
  scratch->reset(before_c);
  scratch->deallocate_now(b);
  EXPECT_EQ(control.committed_bytes(), 0U);
  EXPECT_EQ(scratch->stats().committed_bytes, 0U);
  EXPECT_EQ(scratch->audit(), "");
  scratch->reset();
  scratch->deallocate(scratch->allocate({.bytes = 1000}));
}

TEST(Arena, KeepsWhatAStreamMayStillUse) {
  const auto scratch = arena("cpu", 1_MiB);
  const Stream stream = make_stream("cpu");
  const Block block = scratch->allocate({.bytes = 65536, .stream = stream});
  std::atomic<bool> go{false};
  stream.enqueue([&] {
    while (!go.load()) std::this_thread::yield();
    std::memset(block.data, 1, block.bytes);
  });
  scratch->deallocate(block);
  scratch->release_cached();
  EXPECT_EQ(scratch->stats().committed_bytes, 65536U);
  go.store(true);
  stream.synchronize();
  scratch->release_cached();
  EXPECT_EQ(scratch->stats().committed_bytes, 0U);
}

// While deallocate_now waits for a stream, the program gives that stream more work, and frees, or resets, what
// it is for.
TEST(Arena, KeepsWhatIsFreedWhileItWaitsForAStream) {
  for (const bool resets : {false, true}) {
    const auto scratch = arena("cpu", 1_MiB);
    const Stream stream = make_stream("cpu");
    const Block used = scratch->allocate({.bytes = 65536, .stream = stream});
    const Block last = scratch->allocate({.bytes = 65536, .stream = stream});
    std::atomic<bool> first{false};
    std::atomic<bool> second{false};
    stream.enqueue([&] {
      while (!first.load()) std::this_thread::yield();
    });
    std::thread freeing([&] { scratch->deallocate_now(last); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it waits by now, or the test shows less
    stream.enqueue([&] {
      while (!second.load()) std::this_thread::yield();
      std::memset(used.data, 1, used.bytes);
    });
    scratch->deallocate(used);
    if (resets) scratch->reset();
    first.store(true);
    freeing.join();
    EXPECT_GE(scratch->stats().committed_bytes, 65536U);
    second.store(true);
    stream.synchronize();
    scratch->release_cached();
    EXPECT_EQ(scratch->stats().committed_bytes, 0U);
    EXPECT_EQ(scratch->audit(), "");
  }
}

TEST(Arena, OutlivesItsHandleWhileStoragesUseIt) {
  Storage x;
  {
    const auto scratch = arena("cpu", 1_MiB);
    x = full({100}, 3, DType::i32, scratch);
  }
  EXPECT_EQ(x.item<std::int32_t>({50}), 3);
}

TEST(Arena, RefusesToBeEmptyOrImpossible) {
  EXPECT_ERROR(arena("cpu", 0), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(arena("cpu", SIZE_MAX), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(arena("cpu", SIZE_MAX / 2 + 1), OutOfMemory, ErrorCode::out_of_memory);
}

}  // namespace
}  // namespace berth::testing

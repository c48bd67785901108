// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/sanitizers.h"
#include "memory/space/decay.h"
#include "support/churn.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"
#include "support/test_clock.h"

// Decay: a pool returns memory that it has not needed for a while.
namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Decay, TheLeastOfAPeriodIsIdleAfterIt) {
  Decay decay(seconds(10), SIZE_MAX);
  EXPECT_FALSE(decay.is_over(5 * kSecond)) << "it begins when it is first asked";
  EXPECT_FALSE(decay.is_over(14 * kSecond));
  ASSERT_TRUE(decay.is_over(15 * kSecond));
  decay.end_period(15 * kSecond, 100);
  EXPECT_EQ(decay.idle(), 0U) << "nothing was cached at its beginning";
  decay.saw(60);
  decay.saw(30);
  decay.saw(80);
  EXPECT_EQ(decay.idle(), 0U);
  ASSERT_TRUE(decay.is_over(25 * kSecond));
  decay.end_period(25 * kSecond, 90);
  EXPECT_EQ(decay.idle(), 30U);
  decay.saw(20);
  EXPECT_EQ(decay.idle(), 20U) << "it was needed after all";
  decay.gave(15);
  EXPECT_EQ(decay.idle(), 5U);
}

TEST(Decay, WhatIsReturnedAndCommittedAgainStaysIdle) {
  Decay decay(seconds(1), SIZE_MAX);
  decay.end_period(kSecond, 100);
  decay.end_period(2 * kSecond, 100);
  for (int i = 0; i < 10; ++i) {
    decay.gave(20);  // what a request needs next,
    decay.took(20);  // and commits again
    decay.saw(80);   // while it has it
  }
  EXPECT_EQ(decay.idle(), 80U);
  decay.end_period(3 * kSecond, 100);
  EXPECT_EQ(decay.idle(), 80U);
}

TEST(Decay, GivesBackABoundedPartInAPeriod) {
  Decay decay(seconds(1), 40);
  decay.end_period(kSecond, 100);
  decay.end_period(2 * kSecond, 100);
  EXPECT_EQ(decay.due(), 40U);
  decay.gave(25);
  EXPECT_EQ(decay.due(), 15U);
  decay.gave(15);
  EXPECT_EQ(decay.due(), 0U);
  EXPECT_EQ(decay.idle(), 60U) << "for those who come for nothing else";
  decay.saw(60);
  decay.end_period(3 * kSecond, 60);
  EXPECT_EQ(decay.due(), 40U);
}

TEST(Decay, NeverIsNever) {
  Decay decay(Decay::kNever, SIZE_MAX);
  EXPECT_FALSE(decay.is_over(1));
  EXPECT_FALSE(decay.is_over(~std::uint64_t{0}));
}

class PoolDecay : public ::testing::Test {
 protected:
  // Work at a level: blocks of about this many bytes are allocated and freed.
  static void work(Allocator& memory, std::size_t bytes, int frees = 64) {
    for (int i = 0; i < frees; ++i) memory.deallocate(memory.allocate({.bytes = i % 2 == 0 ? bytes : bytes - 4096}));
  }

  TestClock clock_;
  Device device_ = make_sim({.capacity_bytes = 256_MiB, .background = false});
};

TEST_F(PoolDecay, WorkAtALowerLevelGivesTheRestBack) {
  const auto memory = pool(device_);
  work(*memory, 64_MiB);
  EXPECT_EQ(memory->stats().committed_bytes, 64_MiB);
  for (int period = 0; period < 3; ++period) {
    clock_.advance(seconds(10));
    work(*memory, 1_MiB);
  }
  EXPECT_LE(memory->stats().committed_bytes, 4_MiB);
  EXPECT_EQ(sim_control(device_).committed_bytes(), memory->stats().committed_bytes);
  EXPECT_EQ(memory->audit(), "");
}

// Holes that are as long as a page and have no whole one were looked at first, a few with each free, and again
// with the next.
TEST_F(PoolDecay, HolesWithoutAWholePageDoNotStopIt) {
  const auto memory = pool(make_sim({.capacity_bytes = 256_MiB, .page_bytes = 2_MiB, .background = false}));
  const Block below = memory->allocate({.bytes = 64_MiB});
  std::vector<Block> above;
  for (int i = 0; i < 40; ++i) above.push_back(memory->allocate({.bytes = 2_MiB + 512_KiB}));
  for (std::size_t i = 1; i < above.size(); i += 4) memory->deallocate(above[i]);
  memory->deallocate(below);
  const std::size_t held = memory->stats().committed_bytes;
  for (int period = 0; period < 3; ++period) {
    clock_.advance(seconds(10));
    work(*memory, 1_MiB);
  }
  EXPECT_LE(memory->stats().committed_bytes, held - 60_MiB);
  for (std::size_t i = 0; i < above.size(); ++i) {
    if (i % 4 != 1) memory->deallocate(above[i]);
  }
}

// The bug: holes that are shorter than a huge page, however many there were, never went back.
TEST_F(PoolDecay, ManyHolesOfAnySizeGoBackInTwoPeriods) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer leaves no such addresses";
  for (const std::size_t hole : {192_KiB, 256_KiB, 1_MiB + 192_KiB, 5_MiB}) {
    const auto memory = pool("cpu");
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < 512_MiB / hole; ++i) blocks.push_back(memory->allocate({.bytes = hole}));
    for (std::size_t i = 0; i < blocks.size(); i += 2) memory->deallocate(blocks[i]);
    const std::size_t cached = memory->stats().cached_bytes;
    for (int step = 0; step < 40; ++step) {  // one period may be under way, the next finds them idle, and returns them
      clock_.advance(seconds(1));
      work(*memory, 1_MiB);
    }
    EXPECT_LE(memory->stats().cached_bytes, cached / 10) << hole;
    for (std::size_t i = 1; i < blocks.size(); i += 2) memory->deallocate(blocks[i]);
    EXPECT_EQ(memory->audit(), "");
  }
}

// The thread keeps a block of one size that it reuses all the time; the rest decays all the same.
TEST_F(PoolDecay, WorkWithOneBlockGivesTheRestBack) {
  const auto memory = pool(device_);
  work(*memory, 64_MiB);
  for (int period = 0; period < 3; ++period) {
    clock_.advance(seconds(10));
    for (int i = 0; i < 100; ++i) memory->deallocate(memory->allocate({.bytes = 1_MiB}));
  }
  EXPECT_LE(memory->stats().committed_bytes, 4_MiB);
  EXPECT_EQ(memory->audit(), "");
}

TEST_F(PoolDecay, WhatIsNeededInEveryPeriodStays) {
  const auto memory = pool(device_);
  work(*memory, 64_MiB);
  const std::uint64_t commits = memory->stats().commits;
  for (int period = 0; period < 10; ++period) {
    clock_.advance(seconds(7));
    work(*memory, 1_MiB);
    work(*memory, 64_MiB, 1);
  }
  EXPECT_EQ(memory->stats().commits, commits) << "memory was given back that was needed again";
}

TEST_F(PoolDecay, AFreeGivesBackALittleAndNotEverythingAtOnce) {
  const auto memory = pool(device_);
  const Block small = memory->allocate({.bytes = 1_MiB});
  work(*memory, 128_MiB);
  for (int period = 0; period < 2; ++period) {
    clock_.advance(seconds(11));
    work(*memory, 1_MiB, 16);
  }
  const std::size_t after_one = memory->stats().committed_bytes;
  EXPECT_GE(after_one, 129_MiB - 16_MiB);
  EXPECT_LT(after_one, 129_MiB);
  work(*memory, 1_MiB, 16 * 10);
  EXPECT_LE(memory->stats().committed_bytes, 4_MiB);
  memory->deallocate(small);
}

TEST_F(PoolDecay, AnIdleProgramGivesBackWithTheSecondCall) {
  const auto memory = pool(device_);
  work(*memory, 64_MiB);
  const Block small = memory->allocate({.bytes = 100});
  clock_.advance(seconds(60));
  EXPECT_EQ(memory->stats().committed_bytes, 64_MiB + 64_KiB) << "nobody has asked";
  memory->trim_idle();
  clock_.advance(seconds(5));
  memory->trim_idle();
  EXPECT_EQ(memory->stats().committed_bytes, 64_MiB + 64_KiB) << "a moment is not a period";
  clock_.advance(seconds(5));
  memory->trim_idle();
  EXPECT_EQ(memory->stats().committed_bytes, 64_KiB);
  memory->deallocate(small);
  EXPECT_EQ(memory->stats().committed_bytes, 64_KiB);
  memory->trim_idle();
  for (int i = 0; i < 2; ++i) {
    clock_.advance(seconds(10));
    memory->trim_idle();
  }
  EXPECT_EQ(memory->stats().committed_bytes, 0U) << "the caches of threads count too";
  EXPECT_EQ(memory->audit(), "");
}

// By the real clock: a program that makes no calls at all.
TEST(PoolBackgroundTrim, ReturnsWhatAQuietProgramDoesNotUse) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  auto memory = pool(device, {.decay = milliseconds(20), .background_trim = true});
  const Block kept = memory->allocate({.bytes = 1_MiB});
  memory->deallocate(memory->allocate({.bytes = 32_MiB}));
  for (int i = 0; i < 5000 && memory->stats().committed_bytes > 1_MiB; ++i) std::this_thread::sleep_for(milliseconds(2));
  EXPECT_EQ(memory->stats().committed_bytes, 1_MiB);
  memory->deallocate(kept);
  const std::weak_ptr<Allocator> gone = memory;
  memory.reset();
  for (int i = 0; i < 5000 && !gone.expired(); ++i) std::this_thread::sleep_for(milliseconds(2));
  EXPECT_TRUE(gone.expired()) << "the thread keeps the pool alive";
}

TEST(PoolBackgroundTrim, IsRefusedWhereNothingIsTrimmed) {
  EXPECT_THROW(pool("cpu", {.decay = seconds(0), .background_trim = true}), ArgumentError);
  EXPECT_THROW(pool("cpu", {.decay = PoolOptions::kNever, .background_trim = true}), ArgumentError);
}

TEST_F(PoolDecay, NothingHappensInAHold) {
  const auto memory = pool(device_);
  work(*memory, 64_MiB);
  {
    const Hold quiet = memory->hold();
    for (int i = 0; i < 4; ++i) {
      clock_.advance(seconds(10));
      memory->trim_idle();
      work(*memory, 1_MiB);
    }
    EXPECT_EQ(memory->stats().committed_bytes, 64_MiB);
  }
}

TEST_F(PoolDecay, WhatWasReservedStaysUntilTrim) {
  const auto memory = pool(device_);
  memory->reserve(32_MiB);
  work(*memory, 64_MiB);
  for (int i = 0; i < 4; ++i) {
    clock_.advance(seconds(10));
    memory->trim_idle();
  }
  EXPECT_EQ(memory->stats().committed_bytes, 32_MiB);
  memory->trim(16_MiB);
  for (int i = 0; i < 4; ++i) {
    clock_.advance(seconds(10));
    memory->trim_idle();
  }
  EXPECT_EQ(memory->stats().committed_bytes, 0U);
}

TEST_F(PoolDecay, ZeroIsAtOnceAndNeverIsNever) {
  const auto at_once = pool(device_, {.decay = milliseconds(0)});
  const Block first = at_once->allocate({.bytes = 8_MiB});
  const Block second = at_once->allocate({.bytes = 8_MiB});
  at_once->deallocate(first);
  EXPECT_EQ(at_once->stats().committed_bytes, 8_MiB);
  at_once->deallocate(second);
  EXPECT_EQ(at_once->stats().committed_bytes, 0U);
  const auto never = pool(device_, {.decay = PoolOptions::kNever});
  work(*never, 8_MiB);
  for (int i = 0; i < 4; ++i) {
    clock_.advance(std::chrono::hours(10000));
    never->trim_idle();
    work(*never, 1_MiB);
  }
  EXPECT_EQ(never->stats().committed_bytes, 8_MiB);
  EXPECT_ERROR((void)pool(device_, {.decay = milliseconds(-1)}), ArgumentError, ErrorCode::invalid_argument);
}

TEST_F(PoolDecay, ThreadsWorkWhileMemoryGoesBack) {
  const auto memory = pool(device_, {.decay = milliseconds(5)});
  const auto meanwhile = [&](Random& random) {
    if (random.one_in(50)) clock_.advance(milliseconds(1));
    if (random.one_in(500)) memory->trim_idle();
  };
  const Churned done = churn({memory}, {.steps = scaled(40'000, 1000),
                                        .most_blocks = 20,
                                        .bytes = [](Random& random) { return 1 + random.below(random.one_in(2) ? 1_MiB : 4_KiB); },
                                        .meanwhile = meanwhile});
  EXPECT_EQ(done.refused, 0U);
  const Stats now = memory->stats();
  EXPECT_EQ(now.in_use_bytes, 0U);
  EXPECT_GT(now.decommits, 0U);
  EXPECT_EQ(sim_control(device_).committed_bytes(), now.committed_bytes);
  EXPECT_EQ(memory->audit(), "");
  did(std::to_string(now.decommits) + " times memory went back or moved");
}

}  // namespace
}  // namespace berth::testing

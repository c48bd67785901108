// SPDX-License-Identifier: Apache-2.0
// The bugs: searches of a pool that were quadratic in its holes, and stopped too soon. The tests assert no
// time: with these numbers of holes they did not end.
#include <gtest/gtest.h>

#include <atomic>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/sanitizers.h"
#include "os/memory/memory.h"
#include "support/checkerboard.h"
#include "support/everything.h"
#include "support/failing_calls.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

constexpr std::size_t kHole = 256_KiB;

// One run of bare and cached extents in turn: for each window in it, all extents before it were counted.
TEST(RegressHoles, AWindowIsFoundInALongRun) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer leaves no such addresses";
  const auto memory = pool("cpu", {.decay = std::chrono::milliseconds(0)});
  const std::vector<Block> left = checkerboard(*memory, 20'000, kHole);
  memory->trim(0);
  free_all(*memory, left);
  std::vector<Block> large;
  for (int i = 0; i < 400; ++i) large.push_back(memory->allocate({.bytes = 4 * kHole}));
  EXPECT_EQ(memory->audit(), "");
  free_all(*memory, large);
}

// Holes that are longer than a page and have no whole one: each was looked for from the top, past the others.
TEST(RegressHoles, AreTrimmedThoughFewHaveAWholePage) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer leaves no such addresses";
  const auto memory =
      pool(make_sim({.capacity_bytes = 64_GiB, .page_bytes = 256_KiB, .background = false}), {.decay = std::chrono::milliseconds(0)});
  std::vector<Block> blocks;
  for (int i = 0; i < 120'000; ++i) blocks.push_back(memory->allocate({.bytes = 320_KiB}));
  std::vector<Block> left;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 4 == 1)
      memory->deallocate(blocks[i]);  // with each, what is idle is trimmed at once
    else
      left.push_back(blocks[i]);
  }
  EXPECT_EQ(memory->audit(), "");
  free_all(*memory, left);
}

// What can be had for a request: all that a trim returns, and what the limit leaves.
std::size_t within_reach(Allocator& memory, std::size_t limit) {
  memory.trim(0);
  return limit - memory.stats().committed_bytes;
}

// Holes that are shorter than what an edge was worth, or than a huge page, were not moved: with half of the
// limit cached, a block of 1 MiB was refused.
TEST(RegressHoles, AreMovedBeforeARequestIsRefused) {
  struct Case {
    Device device;
    std::size_t unit;
    std::uint32_t region_waits = PoolOptions::kNoRegions;  // 0: also what is free in regions
  };
  const auto page = static_cast<std::size_t>(os::page_bytes());
  const Device in_pages = make_sim({.capacity_bytes = 1_GiB, .page_bytes = 64_KiB, .background = false});
  const Device in_pieces = make_sim({.capacity_bytes = 1_GiB, .page_bytes = 64_KiB, .piece_bytes = 256_KiB, .background = false});
  const Case cases[] = {{Device("cpu"), page},    {make_sim({.capacity_bytes = 1_GiB, .page_bytes = 4_KiB, .background = false}), 4_KiB},
                        {in_pages, 64_KiB},       {in_pieces, 64_KiB},
                        {Device("cpu"), page, 0}, {in_pages, 64_KiB, 0},
                        {in_pieces, 64_KiB, 0}};
  constexpr std::size_t kLimit = 256_MiB;
  for (const Case& one : cases) {
    const auto memory = pool(one.device, {.limit_bytes = kLimit, .region_waits = one.region_waits});
    Random random(seed());
    std::vector<Block> left;
    std::vector<Block> blocks;
    while (const auto block = memory->try_allocate({.bytes = 140_KiB + random.below(112_KiB)})) blocks.push_back(*block);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % 2 == 0)
        memory->deallocate(blocks[i]);
      else
        left.push_back(blocks[i]);
    }
    std::size_t served = 0;
    while (const auto block = memory->try_allocate({.bytes = 1_MiB})) {
      left.push_back(*block);
      ++served;
    }
    EXPECT_LT(within_reach(*memory, kLimit), 1_MiB) << one.device.to_string() << ", " << served << " served";
    // And at random sizes.
    for (std::uint64_t i = 0; i < scaled(20'000, 400); ++i) {
      const std::size_t bytes = 150_KiB + random.below(random.one_in(8) ? 8_MiB : 300_KiB);
      if (const auto block = memory->try_allocate({.bytes = bytes})) {
        left.push_back(*block);
        continue;
      }
      ASSERT_LT(within_reach(*memory, kLimit), (bytes + one.unit - 1) / one.unit * one.unit) << one.device.to_string();
      for (int n = 0; n < 20 && !left.empty(); ++n) {
        std::swap(left[random.below(left.size())], left.back());
        memory->deallocate(left.back());
        left.pop_back();
      }
    }
    EXPECT_EQ(memory->audit(), "");
    EXPECT_LE(memory->stats().peak_committed_bytes, kLimit);
    free_all(*memory, left);
  }
}

struct Calls {
  std::atomic<int> moved{0};
  std::atomic<int> committed{0};
  std::atomic<int> discarded{0};
} g_calls;

int count_calls(std::string_view call) noexcept {
  if (call == "mremap") ++g_calls.moved;
  if (call == "mprotect") ++g_calls.committed;
  if (call == "madvise") ++g_calls.discarded;
  return 0;
}

// A block of 64 MiB at the limit was made of holes of a page by moving each of them: a quarter of a second. They are
// returned, at a call each, and the block is committed in a few.
TEST(RegressHoles, ShortHolesAreExchangedForALongBlock) {
  constexpr std::size_t kHoles = 400;
  const std::size_t page = os::page_bytes();
  const std::size_t longer = *try_align_up(140_KiB, page) + page;
  const auto memory = pool("cpu", {.limit_bytes = 2 * kHoles * longer, .decay = PoolOptions::kNever});
  std::vector<Block> left = checkerboard(*memory, kHoles, longer);
  for (std::size_t i = 0; i < kHoles; ++i) left.push_back(memory->allocate({.bytes = longer - page}));
  const std::size_t committed = memory->stats().committed_bytes;
  const Injected counted(count_calls);
  left.push_back(memory->allocate({.bytes = kHoles / 2 * page}));
  EXPECT_EQ(g_calls.moved, 0);
  EXPECT_LE(g_calls.discarded, static_cast<int>(kHoles / 2) + 4);
  EXPECT_LE(g_calls.committed, static_cast<int>(kHoles / 2 / 64) + 4);
  EXPECT_LE(memory->stats().committed_bytes, committed);
  EXPECT_EQ(memory->audit(), "");
  free_all(*memory, left);
}

// Every other block is freed, and longer ones are allocated until as much is live as before. The holes are
// shorter than a huge page, and were never moved: half as much again was committed.
TEST(RegressHoles, ACheckerboardHoldsLittleMoreThanThePeak) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer leaves no such addresses";
  for (const std::size_t bytes : {64_KiB, 100_KiB, 140_KiB, 256_KiB, 1_MiB + 12_KiB}) {
    const auto memory = pool("cpu", {.small_bytes = 60_KiB});
    const std::size_t count = 1_GiB / bytes;
    std::vector<Block> blocks = checkerboard(*memory, count / 2, bytes);
    for (std::size_t i = 0; i < count / 4; ++i) blocks.push_back(memory->allocate({.bytes = 2 * bytes}));
    const Stats stats = memory->stats();
    EXPECT_LE(static_cast<double>(stats.peak_committed_bytes), 1.10 * static_cast<double>(stats.peak_in_use_bytes)) << bytes;
    EXPECT_EQ(memory->audit(), "");
    free_all(*memory, blocks);
  }
}

}  // namespace
}  // namespace berth::testing

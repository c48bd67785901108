// SPDX-License-Identifier: Apache-2.0
// The bugs: searches of a pool that were quadratic in its holes. The tests assert no time: with these numbers of
// holes they did not end.
#include <gtest/gtest.h>

#include <vector>

#include "support/everything.h"

namespace berth::testing {
namespace {

constexpr std::size_t kHole = 256_KiB;

void free_all(Allocator& memory, const std::vector<Block>& blocks) {
  for (const Block& block : blocks) memory.deallocate(block);
}

// 2 * count blocks side by side, of which every other was freed.
std::vector<Block> checkerboard(Allocator& memory, std::size_t count) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 2 * count; ++i) blocks.push_back(memory.allocate({.bytes = kHole}));
  std::vector<Block> left;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 2 == 0)
      memory.deallocate(blocks[i]);
    else
      left.push_back(blocks[i]);
  }
  return left;
}

// One run of bare and cached extents in turn: for each window in it, all extents before it were counted.
TEST(RegressHoles, AWindowIsFoundInALongRun) {
  const auto memory = pool("cpu", {.decay = std::chrono::milliseconds(0)});
  const std::vector<Block> left = checkerboard(*memory, 20'000);
  memory->trim(0);
  free_all(*memory, left);
  std::vector<Block> large;
  for (int i = 0; i < 400; ++i) large.push_back(memory->allocate({.bytes = 4 * kHole}));
  EXPECT_EQ(memory->audit(), "");
  free_all(*memory, large);
}

// Holes that are longer than a page and have no whole one: each was looked for from the top, past the others.
TEST(RegressHoles, AreTrimmedThoughFewHaveAWholePage) {
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

}  // namespace
}  // namespace berth::testing

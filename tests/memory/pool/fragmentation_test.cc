// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "memory/cache/size_classes.h"
#include "support/everything.h"
#include "support/scale.h"

// How much memory a pool holds in the worst case, relative to what is in use. The sizes and lifetimes here are
// those that fragment other allocators.
namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

struct Pattern {
  const char* name;
  std::function<void(Allocator&, Random&)> run;
  double most_fine;    // peak held / peak in use, at most, with pages of 64 KiB
  double most_coarse;  // and with pages of 2 MiB, which more blocks have in common
};

void PrintTo(const Pattern& pattern, std::ostream* out) { *out << pattern.name; }

void free_all(Allocator& memory, std::vector<Block>& blocks) {
  for (const Block& block : blocks) memory.deallocate(block);
  blocks.clear();
}

void free_every(Allocator& memory, std::vector<Block>& blocks, std::size_t nth) {
  std::vector<Block> left;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % nth == 0)
      memory.deallocate(blocks[i]);
    else
      left.push_back(blocks[i]);
  }
  blocks = std::move(left);
}

// Each phase frees every second block and asks for blocks that fit in none of the holes.
void growing_blocks(Allocator& memory, Random&) {
  std::vector<Block> blocks;
  for (std::size_t bytes = 160_KiB; bytes <= 3_MiB; bytes = bytes * 5 / 4) {
    free_every(memory, blocks, 2);
    std::size_t live = 0;
    for (const Block& block : blocks) live += block.bytes;
    for (; live + bytes <= 48_MiB; live += bytes) blocks.push_back(memory.allocate({.bytes = bytes}));
  }
  free_all(memory, blocks);
}

void shrinking_blocks(Allocator& memory, Random&) {
  std::vector<Block> blocks;
  for (std::size_t bytes = 3_MiB; bytes >= 1_KiB; bytes = bytes * 2 / 3) {
    free_every(memory, blocks, 3);
    std::size_t live = 0;
    for (const Block& block : blocks) live += block.bytes;
    for (; live + bytes <= 40_MiB; live += bytes) blocks.push_back(memory.allocate({.bytes = bytes}));
  }
  free_all(memory, blocks);
}

// A long-lived small block after each large one.
void pinned_holes(Allocator& memory, Random&) {
  std::vector<Block> large;
  std::vector<Block> small;
  for (int round = 0; round < 6; ++round) {
    while (memory.stats().in_use_bytes < 44_MiB) {
      large.push_back(memory.allocate({.bytes = 200_KiB + static_cast<std::size_t>(round) * 150_KiB}));
      small.push_back(memory.allocate({.bytes = 140_KiB}));
    }
    free_all(memory, large);
    free_every(memory, small, 2);
  }
  free_all(memory, small);
}

void random_sizes(Allocator& memory, Random& random) {
  std::vector<Block> blocks;
  std::size_t live = 0;
  for (std::uint64_t i = 0; i < scaled(2'000'000, 20'000); ++i) {
    const std::size_t bytes = 1 + random.below(std::uint64_t{1} << (8 + random.below(14)));
    if (live + bytes < 44_MiB) {
      blocks.push_back(memory.allocate({.bytes = bytes}));
      live += bytes;
      continue;
    }
    for (std::size_t n = 0; n < 20 && !blocks.empty(); ++n) {
      std::swap(blocks[random.below(blocks.size())], blocks.back());
      live -= blocks.back().bytes;
      memory.deallocate(blocks.back());
      blocks.pop_back();
    }
  }
  free_all(memory, blocks);
}

class PoolFragmentation : public ::testing::TestWithParam<Pattern> {};

// Whole free pages are moved before new ones are committed. What remains is internal fragmentation: a page is
// held while any block lives in it, and a slab, which serves one size class, while any of its blocks does.
// Shrinking sizes exploit the latter.
TEST_P(PoolFragmentation, HoldsNotMuchMoreThanWasEverInUse) {
  for (const std::size_t page : {64_KiB, 2_MiB}) {
    const auto memory = pool(make_sim({.capacity_bytes = 256_MiB, .page_bytes = page, .background = false}));
    Random random(seed());
    for (int round = 0; round < 3; ++round) GetParam().run(*memory, random);  // rounds do not add up
    const Stats now = memory->stats();
    const auto ratio = static_cast<double>(now.peak_committed_bytes) / static_cast<double>(now.peak_in_use_bytes);
    did(std::string(GetParam().name) + " with pages of " + std::to_string(page >> 10) + " KiB: " + std::to_string(ratio));
    const double most = page == 64_KiB ? GetParam().most_fine : GetParam().most_coarse;
    const auto in_cache = static_cast<double>(std::max(2_MiB, now.peak_committed_bytes / 16));
    EXPECT_LE(static_cast<double>(now.peak_committed_bytes), most * static_cast<double>(now.peak_in_use_bytes) + in_cache);
    EXPECT_EQ(now.live_blocks, 0U);
    memory->trim(0);
    EXPECT_EQ(memory->stats().committed_bytes, 0U);
    EXPECT_EQ(memory->audit(), "");
  }
}

// The bound of pool.h for small blocks: for each size class what it held at its own peak, whatever the other
// classes did meanwhile.
TEST(PoolFragmentationBound, SmallBlocksHoldNoMoreThanTheirClassesDidAtTheirPeaks) {
  for (const auto& [page, alignment] : {std::pair(64_KiB, 512), std::pair(2_MiB, 512), std::pair(64_KiB, 64)}) {
    const auto memory = pool(
        make_sim({.capacity_bytes = 1_GiB, .page_bytes = page, .alignment = static_cast<std::size_t>(alignment), .background = false}));
    const SizeClasses classes(memory->backend().properties().alignment);
    std::vector<std::size_t> live(classes.count());
    std::vector<std::size_t> peak(classes.count());
    Random random(seed());
    std::vector<Block> blocks;
    const std::uint64_t phases = scaled(200, 20);
    for (std::uint64_t phase = 0; phase < phases; ++phase) {
      // One size fills what is free, then all but one in `nth` are freed: this pins the most slabs with the
      // fewest live bytes.
      const std::size_t bytes = 64 + random.below(std::uint64_t{1} << (6 + random.below(11)));
      const SizeClass size_class = classes.find(bytes);
      while (memory->stats().in_use_bytes + 64 * bytes < 8_MiB) {
        for (int i = 0; i < 64; ++i) blocks.push_back(memory->allocate({.bytes = bytes}));
        live[size_class] += 64 * classes[size_class].bytes;
        peak[size_class] = std::max(peak[size_class], live[size_class]);
      }
      const std::size_t nth = 2 + random.below(classes[size_class].blocks);
      std::vector<Block> left;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % nth == 0 && !random.one_in(16)) {
          left.push_back(blocks[i]);
          continue;
        }
        const SizeClass freed = classes.find(blocks[i].bytes);
        live[freed] -= classes[freed].bytes;
        memory->deallocate(blocks[i]);
      }
      blocks = std::move(left);
    }
    double bound = 0;
    for (SizeClass c = 0; c < classes.count(); ++c) {
      if (peak[c] > 0) bound += static_cast<double>(peak[c]) * 33 / 32 + classes[c].slab_bytes;
    }
    // The tails of slabs, a thread's cache, and the last pages.
    bound = 1.25 * bound + 2_MiB + static_cast<double>(2 * page);
    const Stats now = memory->stats();
    did("pages of " + std::to_string(page >> 10) + " KiB: held " + std::to_string(now.peak_committed_bytes >> 10) + " KiB, bound " +
        std::to_string(static_cast<std::size_t>(bound) >> 10) + " KiB, most in use " + std::to_string(now.peak_in_use_bytes >> 10) +
        " KiB");
    EXPECT_LE(static_cast<double>(now.peak_committed_bytes), bound);
    // And a bound by the number of doublings of the size: longer free blocks serve shorter requests while most
    // of a slab is free.
    const auto doublings = static_cast<std::size_t>(std::bit_width(kSmallLimit) - std::bit_width(classes[0].bytes));
    EXPECT_LE(now.peak_committed_bytes, (doublings + 4) * now.peak_in_use_bytes);
    free_all(*memory, blocks);
    memory->trim(0);
    EXPECT_EQ(memory->stats().committed_bytes, 0U) << "and none of it is lost";
  }
}

INSTANTIATE_TEST_SUITE_P(With, PoolFragmentation,
                         ::testing::Values(Pattern{"GrowingBlocks", growing_blocks, 1.25, 1.75},
                                           Pattern{"ShrinkingBlocks", shrinking_blocks, 2.75, 3},
                                           Pattern{"PinnedHoles", pinned_holes, 1.25, 1.5},
                                           Pattern{"RandomSizes", random_sizes, 1.35, 1.75}),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace berth::testing

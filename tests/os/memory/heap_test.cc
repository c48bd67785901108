// SPDX-License-Identifier: Apache-2.0
#include "os/memory/heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"
#include "os/inject.h"
#include "support/scale.h"

namespace {

using namespace berth;
using namespace berth::internal;

constexpr std::size_t kMostAlignment = 4096;

bool holds(const void* block, std::size_t bytes, int value) {
  const auto* const begin = static_cast<const unsigned char*>(block);
  return std::all_of(begin, begin + bytes, [&](unsigned char c) { return c == value; });
}

TEST(Heap, BlocksAreAlignedAndWritableOverAllTheirBytes) {
  for (std::size_t alignment = 1; alignment <= kMostAlignment; alignment *= 2) {
    // Every size around the boundary of the small ones, others in steps.
    for (std::size_t bytes = 1; bytes <= 3000; bytes += bytes < 130 || (bytes > 1000 && bytes < 1050) ? 1 : 37) {
      void* const block = os::heap_allocate(bytes, alignment);
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U) << bytes << " bytes aligned to " << alignment;
      std::memset(block, 0x5a, bytes);
      ASSERT_TRUE(holds(block, bytes, 0x5a));
      os::heap_free(block, bytes, alignment);
    }
  }
}

TEST(Heap, BlocksDoNotTouchEachOther) {
  struct Block {
    void* address;
    std::size_t bytes;
    std::size_t alignment;
    int value;
  };
  Random random(berth::testing::seed());
  const std::uint64_t count = berth::testing::scaled(50'000, 1000);
  std::vector<Block> live;
  const auto free_one = [&](std::size_t at) {
    const Block block = live[at];
    live[at] = live.back();
    live.pop_back();
    ASSERT_TRUE(holds(block.address, block.bytes, block.value)) << block.bytes << " bytes aligned to " << block.alignment;
    os::heap_free(block.address, block.bytes, block.alignment);
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    if (live.size() > 200 || (!live.empty() && random.one_in(3))) {
      ASSERT_NO_FATAL_FAILURE(free_one(random.below(live.size())));
    }
    const std::size_t bytes = 1 + random.below(random.one_in(2) ? 128 : 3000);
    const std::size_t alignment = std::size_t{1} << random.below(13);
    void* const block = os::heap_allocate(bytes, alignment);
    ASSERT_NE(block, nullptr);
    const int value = static_cast<int>(random.below(256));
    std::memset(block, value, bytes);
    live.push_back({block, bytes, alignment, value});
  }
  while (!live.empty()) ASSERT_NO_FATAL_FAILURE(free_one(0));
  berth::testing::did(std::to_string(count) + " blocks, seed " + std::to_string(berth::testing::seed()));
}

TEST(Heap, AnotherThreadMayFree) {
  constexpr std::size_t kAlignments[] = {1, 16, 32, 64, 128};
  std::vector<void*> blocks;
  for (const std::size_t alignment : kAlignments) blocks.push_back(os::heap_allocate(100, alignment));
  for (void* const block : blocks) std::memset(block, 1, 100);
  std::thread([&] {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_TRUE(holds(blocks[i], 100, 1));
      os::heap_free(blocks[i], 100, kAlignments[i]);
    }
  }).join();
}

// Hazard A3: rounding the size up to the alignment must not wrap to a small one.
TEST(Heap, HasNoBlockForASizeThatCannotBeRoundedUp) {
  for (std::size_t alignment = 128; alignment <= kMostAlignment; alignment *= 2) {
    for (std::size_t k = 0; k < alignment - 1; ++k) ASSERT_EQ(os::heap_allocate(SIZE_MAX - k, alignment), nullptr) << "SIZE_MAX - " << k;
  }
}

TEST(Heap, GivesNothingWhenTheInjectorSaysSo) {
  os::set_injector([](std::string_view call) noexcept { return call == "malloc" ? ENOMEM : 0; });
  const std::size_t alignments[] = {1, 16, 64, 4096};
  std::vector<void*> blocks;
  for (const std::size_t alignment : alignments) blocks.push_back(os::heap_allocate(64, alignment));
  const int error = errno;
  os::set_injector(nullptr);
  EXPECT_EQ(blocks, std::vector<void*>(4, nullptr));
  EXPECT_EQ(error, ENOMEM);
  void* const block = os::heap_allocate(64, 64);
  EXPECT_NE(block, nullptr) << "the injector is gone";
  os::heap_free(block, 64, 64);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/slot_allocator.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/errors.h"
#include "support/everything.h"

// Slots that are requested and released by hand.
namespace berth::testing {

namespace {

TEST(SlotAllocator, HandsOnWhatWasReleased) {
  SlotAllocator slots(1);
  const std::uint32_t a = slots.request({.bytes = 64});
  const std::uint32_t b = slots.request({.bytes = 64});
  EXPECT_NE(a, b);
  slots.release(a);
  EXPECT_EQ(slots.request({.bytes = 64}), a);
  EXPECT_EQ(slots.slots().size(), 2U);
}

TEST(SlotAllocator, TakesTheSmallestThatIsLargeEnoughTheFirstReleasedOfEquals) {
  SlotAllocator slots(4);
  std::vector<std::uint32_t> given;
  for (const std::size_t bytes : {300U, 100U, 100U, 100U}) given.push_back(slots.request({.bytes = bytes}));
  for (const std::size_t i : {0U, 3U, 1U, 2U}) slots.release(given[i]);
  EXPECT_EQ(slots.request({.bytes = 80}), given[3]);
  EXPECT_EQ(slots.request({.bytes = 80}), given[1]);
  EXPECT_EQ(slots.request({.bytes = 101}), given[0]);
}

TEST(SlotAllocator, GrowsTheLargestThatIsTooSmallTheLastReleasedOfEquals) {
  SlotAllocator slots(4);
  std::vector<std::uint32_t> given;
  for (const std::size_t bytes : {30U, 40U, 40U, 200U}) given.push_back(slots.request({.bytes = bytes}));
  for (const std::size_t i : {0U, 1U, 2U}) slots.release(given[i]);
  EXPECT_EQ(slots.request({.bytes = 100}), given[2]);
  EXPECT_EQ(slots.slots()[given[2]].bytes, 100U);
  EXPECT_EQ(slots.request({.bytes = 164}), 4U) << "a quarter of it is more than 40";
}

TEST(SlotAllocator, KeepsDevicesApartAndPrefersAColour) {
  SlotAllocator slots(2);
  const std::uint32_t far = slots.request({.bytes = 64, .device = 3});
  const std::uint32_t red = slots.request({.bytes = 64, .colour = 1});
  const std::uint32_t blue = slots.request({.bytes = 64, .colour = 2});
  for (const std::uint32_t slot : {far, red, blue}) slots.release(slot);
  EXPECT_EQ(slots.request({.bytes = 64, .colour = 2}), blue);
  EXPECT_EQ(slots.request({.bytes = 64, .colour = 7}), red) << "none has it";
  EXPECT_EQ(slots.request({.bytes = 64}), 3U);
  EXPECT_EQ(slots.request({.bytes = 64, .device = 3}), far);
}

TEST(SlotAllocator, WithRangeZeroUsesNoSlotTwice) {
  SlotAllocator slots(0);
  slots.release(slots.request({.bytes = 64}));
  EXPECT_EQ(slots.request({.bytes = 64}), 1U);
}

TEST(SlotAllocator, AnEmptyValueNeedsNone) {
  SlotAllocator slots;
  const std::uint32_t none = slots.request({});
  EXPECT_EQ(none, kNoSlot);
  slots.release(none);
  EXPECT_TRUE(slots.laid_out().empty());
}

TEST(SlotAllocator, LaysSlotsOutByFallingAlignment) {
  SlotAllocator slots;
  (void)slots.request({.bytes = 4, .alignment = 4});
  (void)slots.request({.bytes = 64, .alignment = 64});
  const std::vector<PlanSlot> table = slots.laid_out();
  EXPECT_EQ(table[1].offset, 0U);
  EXPECT_EQ(table[0].offset, 64U);
}

TEST(SlotAllocator, ASlotThatIsOccupiedStaysAsItIs) {
  SlotAllocator slots(16, {{.bytes = 32, .offset = 0}, {.bytes = 40, .offset = 100}, {.bytes = 24, .offset = 32}});
  slots.occupy(1);
  EXPECT_EQ(slots.request({.bytes = 48}), 0U) << "of the free ones, it is the largest that is too small";
  slots.release(1);
  EXPECT_EQ(slots.request({.bytes = 50}), 2U) << "the one that was occupied may be used, and does not grow";
  EXPECT_EQ(slots.request({.bytes = 40, .alignment = 8}), 3U) << "it does not lie at a multiple of 8";
  EXPECT_EQ(slots.request({.bytes = 40, .alignment = 4}), 1U);
  const std::vector<PlanSlot> table = slots.laid_out();
  EXPECT_EQ(table[1], (PlanSlot{0, 40, 100}));
  EXPECT_EQ(table[2].offset, 0U) << "the largest first, below it";
  EXPECT_EQ(table[0].offset, 50U);
  EXPECT_EQ(table[3].offset, 144U);
}

TEST(SlotAllocator, RefusesWhatCannotBe) {
  EXPECT_ERROR(SlotAllocator(-1), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(SlotAllocator(1 << 21), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(SlotAllocator(16, {{.bytes = SIZE_MAX}}), ArgumentError, ErrorCode::size_overflow);
  SlotAllocator slots;
  EXPECT_ERROR(slots.request({.bytes = 8, .alignment = 3}), ArgumentError, ErrorCode::invalid_alignment);
  EXPECT_ERROR(slots.request({.bytes = SIZE_MAX}), ArgumentError, ErrorCode::size_overflow);
  const std::uint32_t slot = slots.request({.bytes = 8});
  EXPECT_ERROR(slots.occupy(slot), ArgumentError, ErrorCode::invalid_argument);
  slots.release(slot);
  EXPECT_ERROR(slots.release(slot), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(slots.release(9), ArgumentError, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "record/tally.h"

#include <gtest/gtest.h>

#include <numeric>

#include "berth/base/checked.h"

namespace {

using namespace berth;
using namespace berth::internal::record;

constexpr DeviceKey kDevice{};

Tally tally_of(std::initializer_list<std::size_t> sizes) {
  EXPECT_TRUE(begin_tally());
  for (const std::size_t bytes : sizes) {  // one after the other: two of the largest blocks do not fit into memory
    tally_allocation(kDevice, {}, bytes);
    tally_free(kDevice, {}, bytes);
  }
  end_tally();
  return read_tally();
}

TEST(Tally, SizesAreRoundedUpToPowersOfTwo) {
  const Tally tally = tally_of({1, 2, 3, 4, 5, 8, 9});
  EXPECT_EQ(tally.sizes[0], 1U);
  EXPECT_EQ(tally.sizes[1], 1U);
  EXPECT_EQ(tally.sizes[2], 2U);
  EXPECT_EQ(tally.sizes[3], 2U);
  EXPECT_EQ(tally.sizes[4], 1U);
}

TEST(Tally, EverySizeThereIsHasARow) {
  const Tally tally = tally_of({0, 1, kMaxBytes});
  EXPECT_EQ(tally.sizes[0], 2U) << "0 bytes count as 1";
  EXPECT_EQ(tally.sizes[Tally::kSizes - 1], 1U);
  EXPECT_EQ(std::accumulate(tally.sizes.begin(), tally.sizes.end(), std::uint64_t{0}), 3U);
  ASSERT_EQ(tally.devices.size(), 1U);
  EXPECT_EQ(tally.devices.front().counts.allocations, 3U);
  EXPECT_EQ(tally.devices.front().counts.bytes, 0);
}

}  // namespace

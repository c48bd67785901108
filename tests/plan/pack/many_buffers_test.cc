// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plan/pack/expect_packed.h"
#include "plan/pack/fit.h"
#include "plan/pack/lowest.h"
#include "plan/pack/orders.h"
#include "plan/pack/parts.h"
#include "plan/pack/tight_instances.h"
#include "plan/portfolio.h"
#include "support/scale.h"

// The measures that save memory with very many buffers do not change the result.
namespace berth::testing {

using namespace internal::base;

namespace {

using namespace internal::plan;

const Patience kEndless{std::nullopt, {}};

TEST(ManyBuffers, AreGivenBackByThePortfolioAsTheyWere) {
  for (std::uint64_t round = 0; round < scaled(100, 10); ++round) {
    Random random(seed() + round);
    std::vector<PackBuffer> buffers = tight_instance(random, 20, 30);
    for (PackBuffer& one : buffers) {
      one.begin += 7;
      one.end += 7;
      one.device = static_cast<std::uint16_t>(random.below(2));
      if (random.one_in(9)) one.fixed = 100 * random.below(1000);
      if (random.one_in(9)) one.bytes = 0;
    }
    const std::vector<PackBuffer> back = Portfolio(buffers, 2).take_buffers();
    ASSERT_EQ(back.size(), buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      ASSERT_EQ(back[i].bytes, buffers[i].bytes);
      if (buffers[i].bytes == 0) continue;
      EXPECT_EQ(back[i].begin, buffers[i].begin);
      EXPECT_EQ(back[i].end, buffers[i].end);
      EXPECT_EQ(back[i].device, buffers[i].device);
      EXPECT_EQ(back[i].fixed.value_or(1), buffers[i].fixed.value_or(1));
    }
  }
}

// Heights have 32 bits where all relevant ones are below 2³², else 64.
TEST(ManyBuffers, LieAsLowWithNarrowHeightsAsWithWideOnes) {
  constexpr std::size_t kFactor = (std::size_t{1} << 33) + 1;  // odd, so that there is no larger unit
  for (std::uint64_t round = 0; round < scaled(100, 10); ++round) {
    Random random(seed() + round);
    const Part narrow = std::move(cut_into_parts(tight_instance(random, 40, 60)).front().part);
    Part wide = narrow;
    for (PackBuffer& one : wide.buffers) one.bytes *= kFactor;
    const PackAnswer small = pack_lowest({narrow, 1000, kEndless}, Order::time);
    const PackAnswer large = pack_lowest({wide, 1000 * kFactor, kEndless}, Order::time);
    ASSERT_EQ(small.end, PackEnd::done);
    ASSERT_EQ(large.end, PackEnd::done);
    expect_packed(narrow, small.packing);
    expect_packed(wide, large.packing);
    EXPECT_EQ(large.packing.peak_bytes, small.packing.peak_bytes * kFactor);
  }
}

// A few hard buffers, and then so many unrelated ones that lists hold indices.
TEST(ManyBuffers, LieInTheSameGapsHoweverListsRememberThem) {
  Random random(seed());
  const Part few = std::move(cut_into_parts(tight_instance(random, 200, 1500)).front().part);
  Part many = few;
  for (std::uint32_t i = 0; many.buffers.size() <= kVeryMany; ++i)
    many.buffers.push_back({.bytes = 1, .begin = few.steps + i, .end = few.steps + i + 1});
  many.steps = many.buffers.back().end;
  for (const Fit fit : {Fit::first, Fit::best}) {
    std::vector<std::uint32_t> order = order_buffers(few, Order::area);
    const PackAnswer short_one = pack_in_order({few, SIZE_MAX / 4, kEndless}, order, fit);
    for (auto i = static_cast<std::uint32_t>(few.buffers.size()); i < many.buffers.size(); ++i) order.push_back(i);
    PackAnswer long_one = pack_in_order({many, SIZE_MAX / 4, kEndless}, order, fit);
    ASSERT_EQ(short_one.end, PackEnd::done);
    ASSERT_EQ(long_one.end, PackEnd::done);
    EXPECT_EQ(long_one.packing.peak_bytes, short_one.packing.peak_bytes);
    long_one.packing.offsets.resize(few.buffers.size());
    EXPECT_EQ(long_one.packing.offsets, short_one.packing.offsets);
  }
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/hard_instances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "plan/pack/exact/exact.h"
#include "plan/pack/expect_packed.h"
#include "plan/pack/parts.h"
#include "support/scale.h"

// The exact search on large instances whose answer is known.
namespace berth::testing {

using namespace internal::plan;

namespace {

const Patience kNoEnd{std::nullopt, {}};

std::size_t most_live(const std::vector<PackBuffer>& buffers) {
  std::map<std::uint32_t, std::ptrdiff_t> changes;
  for (const PackBuffer& one : buffers) {
    changes[one.begin] += static_cast<std::ptrdiff_t>(one.bytes);
    changes[one.end] -= static_cast<std::ptrdiff_t>(one.bytes);
  }
  std::ptrdiff_t live = 0;
  std::ptrdiff_t most = 0;
  for (const auto& [step, change] : changes) most = std::max(most, live += change);
  return static_cast<std::size_t>(most);
}

Part whole_part(const HardInstance& one) {
  Part part;
  part.buffers = one.buffers;
  return part;
}

TEST(HardInstances, AreHardAndHaveTheAnswerTheyClaim) {
  for (const HardShape& shape : hard_shapes())
    for (std::uint64_t number = 0; number < 2 * scaled(10, 1); number += 2) {
      SCOPED_TRACE(std::string(shape.name) + " " + std::to_string(number));
      const HardInstance one = hard_instance(shape, number);
      EXPECT_GE(one.buffers.size(), 150U);
      EXPECT_LE(one.buffers.size(), 512U);
      EXPECT_GE(one.simple * 100, one.answer * 115);
      EXPECT_EQ(most_live(one.buffers), one.answer) << "nothing lower is possible";
      expect_packed(whole_part(one), {one.offsets, one.answer});
    }
}

TEST(HardInstances, AreTheSameAgain) {
  const HardShape& shape = hard_shapes().back();
  const HardInstance one = hard_instance(shape, 4);
  const HardInstance again = hard_instance(shape, 4);
  EXPECT_EQ(one.offsets, again.offsets);
  EXPECT_NE(one.offsets, hard_instance(shape, 6).offsets);
}

// Whether the search finds the answer, within the steps it has without a deadline.
bool is_found(const HardInstance& one, const pack::exact::Rules& rules = {}) {
  for (const CutPart& cut : cut_into_parts(one.buffers)) {
    const PackAnswer answer = pack_exact({cut.part, SIZE_MAX / 4, kNoEnd, one.answer, 0, one.answer}, rules);
    if (answer.end != PackEnd::done) return false;
    expect_packed(cut.part, answer.packing);
    EXPECT_LE(answer.packing.peak_bytes, one.answer);
  }
  return true;
}

const HardShape& shape_named(std::string_view name) {
  const auto shapes = hard_shapes();
  return *std::find_if(shapes.begin(), shapes.end(), [&](const HardShape& one) { return one.name == name; });
}

// One of each shape, of those that take a few thousand steps.
TEST(HardInstances, AreSolvedOfEveryShape) {
  constexpr std::uint64_t kNumbers[] = {2, 2, 2, 2, 6, 2, 14, 16, 44, 4, 4, 4};
  ASSERT_EQ(std::size(kNumbers), hard_shapes().size());
  for (std::size_t i = 0; i < std::size(kNumbers); ++i)
    EXPECT_TRUE(is_found(hard_instance(hard_shapes()[i], kNumbers[i]))) << hard_shapes()[i].name;
}

// Where sizes are few, many buffers fit at the lowest place, and deciding there first leads astray.
TEST(HardInstances, SomeAreSolvedOnlyWhereTheFewestFitFirst) {
  pack::exact::Rules without;
  without.fewest = false;
  for (const auto& [name, number] : {std::pair{"tracks of few sizes", std::uint64_t{20}}, {"slices of few sizes", std::uint64_t{10}}}) {
    const HardInstance one = hard_instance(shape_named(name), number);
    EXPECT_TRUE(is_found(one)) << name;
    EXPECT_FALSE(is_found(one, without)) << name;
  }
}

TEST(HardInstances, ArePackedTheSameForTheSameSeed) {
  const HardInstance one = hard_instance(hard_shapes()[0], 0);
  for (const CutPart& cut : cut_into_parts(one.buffers)) {
    const PackTask task{cut.part, SIZE_MAX / 4, kNoEnd, one.answer, 5, one.answer};
    EXPECT_EQ(pack_exact(task, {}).packing.offsets, pack_exact(task, {}).packing.offsets);
  }
}

// This one is not solved in seconds, by any of the restarts.
TEST(HardInstances, EndAtTheirTimeLimit) {
  using namespace std::chrono_literals;
  const HardInstance one = hard_instance(shape_named("pinwheels with noise"), 2);
  const std::vector<CutPart> parts = cut_into_parts(one.buffers);
  const auto begin = Patience::Clock::now();
  const Patience soon(begin + 50ms, {});
  const PackAnswer answer = pack_exact({parts.front().part, SIZE_MAX / 4, soon, one.answer, 0, one.answer}, {});
  EXPECT_EQ(answer.end, PackEnd::out_of_time);
  EXPECT_LT(Patience::Clock::now() - begin, 2s);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/hard_instances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "plan/pack/expect_packed.h"
#include "support/scale.h"

// Large instances whose answer is known.
namespace berth::testing {

using namespace internal::plan;

namespace {

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

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "plan/pack/packer.h"

namespace berth::testing {

using namespace internal::plan;

// Nothing in a part overlaps, and everything is aligned, at its fixed offset if it has one, and below the peak.
inline void expect_packed(const internal::plan::Part& part, const internal::plan::Packing& packing) {
  ASSERT_EQ(packing.offsets.size(), part.buffers.size());
  for (std::size_t i = 0; i < part.buffers.size(); ++i) {
    const internal::plan::PackBuffer& a = part.buffers[i];
    ASSERT_LE(packing.offsets[i] + a.bytes, packing.peak_bytes);
    ASSERT_EQ(packing.offsets[i] % a.alignment, 0U);
    ASSERT_EQ(packing.offsets[i], a.fixed.value_or(packing.offsets[i]));
    for (std::size_t k = 0; k < i; ++k) {
      const internal::plan::PackBuffer& b = part.buffers[k];
      const bool together = a.begin < b.end && b.begin < a.end;
      const bool apart = packing.offsets[i] >= packing.offsets[k] + b.bytes || packing.offsets[k] >= packing.offsets[i] + a.bytes;
      ASSERT_TRUE(!together || apart) << i << " and " << k;
    }
  }
}

}  // namespace berth::testing

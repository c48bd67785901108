// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/everything.h"

// Needs a real device; skipped, with the reason, where there is none.
namespace berth::testing {
namespace {

TEST(Cuda, StoragesWorkOnARealDevice) {
  if (find_backend("cuda:0") == nullptr) GTEST_SKIP() << "no CUDA device: " << device_kinds().back().unavailable_reason;
  EXPECT_EQ(full({4}, 3, DType::f32, "cuda:0").to("cpu").item<float>({2}), 3.0F);
}

}  // namespace
}  // namespace berth::testing

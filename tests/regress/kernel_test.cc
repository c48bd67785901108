// SPDX-License-Identifier: Apache-2.0
// Kernels other than the newest.
#include <gtest/gtest.h>

#include <string>

#include "support/process.h"
#include "support/scale.h"

namespace berth::testing {
namespace {

// Before Linux 6.17 an mremap of several mappings unmaps its target and then fails.
TEST(RegressKernel, AnMremapThatFailsHalfWayHurtsNobodyElse) {
  const Ran ran = run_command(BERTH_OLD_MREMAP " " + std::to_string(scaled(20'000, 1000)));
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  did(ran.output.substr(0, ran.output.find('\n')));
}

// Any kernel's may run out of memory after it has unmapped its target. Addresses that others took meanwhile are
// theirs.
TEST(RegressKernel, AddressesThatAreLostAreLeftAlone) {
  const Ran ran = run_command(BERTH_OLD_MREMAP " " + std::to_string(scaled(20'000, 1000)) + " 20");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  did(ran.output.substr(0, ran.output.find('\n')));
}

}  // namespace
}  // namespace berth::testing

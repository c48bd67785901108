// SPDX-License-Identifier: Apache-2.0
#include "support/process.h"

#include <gtest/gtest.h>

// Beginning, forking and ending, each in a program of its own (helper.cc).
namespace berth::testing {
namespace {

Ran helper(const std::string& way, const std::string& environment = "") {
  return run_command(environment + " timeout 60 " BERTH_HELPER " " + way);
}

void expect_well(const std::string& way) {
  const Ran ran = helper(way);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(ran.output, "");
}

TEST(Process, StaticStoragesStreamsAndArenasMayOutliveMain) { expect_well("static-storages"); }
TEST(Process, AThreadsStoragesDieWithItAndItsGiftsDoNot) { expect_well("thread-exit"); }
TEST(Process, AChildForkedFromBusyThreadsCanGoOn) { expect_well("fork-while-busy"); }
TEST(Process, AForkedChildTouchesNothingItInheritedFromADevice) { expect_well("fork-with-devices"); }
TEST(Process, AChildOfAChildIsToldApart) { expect_well("fork-in-a-chain"); }
TEST(Process, AProcessMayEndWithWorkInItsStreams) { expect_well("leave-work-behind"); }
TEST(Process, APoolServesDestructorsOfThreadLocalObjects) { expect_well("pool-thread-end"); }
TEST(Process, PoolsMayOutliveMain) { expect_well("pool-after-main"); }
TEST(Process, StoragesOutliveTheHandleOfTheirPool) { expect_well("pool-handle-dropped"); }
TEST(Process, AChildForkedFromThreadsThatUseAPoolCanGoOn) { expect_well("pool-fork-while-busy"); }

TEST(Process, MisuseIsReportedOnStandardError) {
  const Ran ran = helper("misuse-aborts");
  EXPECT_EQ(ran.exit_code, 1) << "the check at the end of the program counts it";
  EXPECT_NE(ran.output.find("berth: double_free of 0x"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("nothing was changed"), std::string::npos) << ran.output;
}

TEST(Process, MisuseAbortsWhenAskedTo) {
  const Ran ran = helper("misuse-aborts", "BERTH_CHECK=abort");
  EXPECT_NE(ran.output.find("double_free"), std::string::npos) << ran.output;
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_NE(ran.exit_code, 1) << "it ends by the signal";
}

}  // namespace
}  // namespace berth::testing

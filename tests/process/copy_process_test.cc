// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/process.h"

// Copies by several threads in processes that fork, end, or cannot start threads, each in a program of its own
// (copy_helper.cc).
namespace berth::testing {
namespace {

Ran helper(const std::string& way, const std::string& environment = "") {
  return run_command(environment + " timeout 120 " BERTH_COPY_HELPER " " + way);
}

void expect_well(const std::string& way, const std::string& environment = "") {
  const Ran ran = helper(way, environment);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(ran.output, "");
}

TEST(CopyProcess, AForkedChildHasWorkersOfItsOwn) { expect_well("fork-after-copies"); }
TEST(CopyProcess, AChildForkedWhileOthersCopyCanCopy) { expect_well("fork-while-copying"); }
TEST(CopyProcess, CopiesWorkWhenNoThreadCanBeStarted) { expect_well("no-threads-to-be-had"); }
TEST(CopyProcess, AProcessMayEndWithWorkersAtWork) { expect_well("leave-workers-behind"); }
TEST(CopyProcess, OneThreadMeansNoWorker) { expect_well("one-thread-starts-none", "BERTH_THREADS=1"); }

TEST(CopyProcess, TheNumberOfThreadsIsThatOfTheVariable) {
  for (const std::string number : {"1", "3", "256"}) EXPECT_EQ(helper("say-threads", "BERTH_THREADS=" + number).output, number + "\n");
  const int by_itself = std::stoi(helper("say-threads").output);
  EXPECT_GE(by_itself, 1);
  EXPECT_LE(by_itself, 16);
  EXPECT_EQ(helper("say-threads", "BERTH_THREADS=''").output, std::to_string(by_itself) + "\n") << "an empty one is none";
  EXPECT_EQ(helper("say-threads-of-one-processor").output, "1\n") << "the processors that this process may use";
}

TEST(CopyProcess, AVariableThatMakesNoSenseIsSaid) {
  for (const std::string number : {"0", "-1", "257", "many", "4x", "99999999999999999999", "' 4'", "1.5"}) {
    const Ran ran = helper("say-threads", "BERTH_THREADS=" + number);
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_EQ(ran.output.find("invalid_argument: "), 0U) << number << ": " << ran.output;
    EXPECT_NE(ran.output.find("BERTH_THREADS="), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("use a number from 1 to 256"), std::string::npos) << ran.output;
  }
}

TEST(CopyProcess, ANumberThatIsSetCountsMoreThanTheVariable) {
  EXPECT_EQ(helper("set-threads", "BERTH_THREADS=7").output, "3\n");
  EXPECT_EQ(helper("set-threads", "BERTH_THREADS=nonsense").output, "3\n");
}

}  // namespace
}  // namespace berth::testing

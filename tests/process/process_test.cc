// SPDX-License-Identifier: Apache-2.0
#include "support/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/everything.h"

// Start, fork and exit, each in a program of its own (helper.cc).
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

TEST(Process, UnorderedStreamsAreReportedWhenAskedTo) {
  EXPECT_EQ(helper("forget-an-order").output, "");
  const Ran ran = helper("forget-an-order", "BERTH_CHECK=streams");
  EXPECT_EQ(ran.exit_code, 1) << "the check at the end of the program counts it";
  EXPECT_NE(ran.output.find("berth: unordered_streams of 0x"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("nothing orders stream 2 after stream 1, which touched it"), std::string::npos) << ran.output;
  EXPECT_GT(helper("forget-an-order", "BERTH_CHECK=streams,abort").exit_code, 1) << "it ends by the signal";
}

TEST(Process, AWriteAfterFreeIsFoundAtTheEndOfACheckedProgram) {
  const Ran ran = helper("write-after-free", "BERTH_CHECK=1");
  EXPECT_EQ(ran.exit_code, 1) << "the check at the end of the program counts it";
  EXPECT_NE(ran.output.find("use_after_free of 0x"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("byte 17 was written"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("allocated at helper.cc:"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("freed at process_helper+0x"), std::string::npos) << ran.output;
  const Ran aborted = helper("write-after-free", "BERTH_CHECK=abort");
  EXPECT_NE(aborted.output.find("use_after_free"), std::string::npos) << aborted.output;
  EXPECT_NE(aborted.exit_code, 1) << "it ends by the signal";
}

TEST(Process, CheckedProgramsBeginForkAndEndAsOthersDo) {
  for (const char* way :
       {"static-storages", "thread-exit", "fork-while-busy", "fork-with-devices", "fork-in-a-chain", "leave-work-behind"}) {
    const Ran ran = helper(way, "BERTH_CHECK=abort,guard=3");
    EXPECT_EQ(ran.exit_code, 0) << way << ": " << ran.output;
    EXPECT_EQ(ran.output, "") << way;
  }
}

// The file that BERTH_TRACE named, read after the program has exited.
struct Traced {
  Ran ran;
  Trace trace;
  std::vector<Trace> of_children;  // beside it, by the most events
};

Traced traced_helper(const std::string& way, const std::string& more = "") {
  const std::filesystem::path folder = ::testing::TempDir() + "berth_process_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "own.trace").string();
  Traced result{helper(way, more + " BERTH_TRACE=" + path), {}, {}};
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::stringstream bytes;
    bytes << std::ifstream(file.path(), std::ios::binary).rdbuf();
    Trace trace = read_trace(bytes.str(), file.path().string());
    if (file.path() == path)
      result.trace = std::move(trace);
    else
      result.of_children.push_back(std::move(trace));
  }
  std::filesystem::remove_all(folder);
  std::ranges::sort(result.of_children, std::greater(), [](const Trace& trace) { return trace.events.size(); });
  return result;
}

TEST(Process, IsTracedFromTheStartToAfterMain) {
  const auto traced = traced_helper("be-traced");
  const auto& ran = traced.ran;
  const auto& trace = traced.trace;
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_TRUE(trace.complete);
  EXPECT_EQ(trace.unpaired, 0U);
  const auto count = [&](std::size_t from, std::size_t to) {
    return std::ranges::count_if(trace.events, [&](const TraceEvent& e) { return e.bytes >= from && e.bytes < to; });
  };
  EXPECT_EQ(count(1000, 1500), 50000);
  EXPECT_EQ(count(2000, 2500), 500);
  EXPECT_EQ(count(31337, 31338), 1) << "a static object";
  const ReplayScript script = plan_replay(trace.events);
  std::size_t live = 0;
  for (const ReplayStep& step : script.steps) step.allocates ? ++live : --live;
  EXPECT_EQ(live, 0U) << "its free after main is in the trace";
}

// The bug: what was in the threads' buffers of 64 KiB, all of 5,000 events, was lost.
TEST(Process, AKilledProcessLosesAtMostFourKibibytesOfEachThread) {
  constexpr std::ptrdiff_t kMostLost = 4096 / sizeof(std::uint32_t);
  const auto [ran, trace, others] = traced_helper("be-killed-in-a-trace");
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_FALSE(trace.complete);
  for (const std::size_t bytes : {64, 65})
    EXPECT_GE(std::ranges::count(trace.events, bytes, &TraceEvent::bytes), 5000 - kMostLost) << "thread " << bytes;
  EXPECT_EQ(plan_replay(trace.events).steps.size(), trace.events.size());
}

TEST(Process, AForkedChildHasATraceOfItsOwn) {
  const auto [ran, trace, children] = traced_helper("fork-in-a-trace");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_TRUE(trace.complete);
  const auto count = [](const Trace& of, std::size_t bytes) { return std::ranges::count(of.events, bytes, &TraceEvent::bytes); };
  EXPECT_EQ(count(trace, 66) + count(trace, 67) + count(trace, 68), 0);
  EXPECT_EQ(count(trace, 77), 1);
  ASSERT_EQ(children.size(), 2U);
  EXPECT_TRUE(children[0].complete);
  EXPECT_EQ(count(children[0], 66), 50000);
  EXPECT_EQ(count(children[0], 67), 1);
  EXPECT_EQ(count(children[0], 77), 0) << "what was allocated before the fork is in the parent's";
  EXPECT_TRUE(children[1].complete);
  EXPECT_EQ(count(children[1], 68), 10);
}

TEST(Process, ATraceThatCannotBeIsSaidAndTheProgramRuns) {
  const Ran nowhere = helper("thread-exit", "BERTH_TRACE=/nowhere/at/all");
  EXPECT_EQ(nowhere.exit_code, 0);
  EXPECT_NE(nowhere.output.find("BERTH_TRACE has no effect"), std::string::npos) << nowhere.output;
  const Ran limit = helper("thread-exit", "BERTH_TRACE=/dev/null BERTH_TRACE_LIMIT=much");
  EXPECT_EQ(limit.exit_code, 0);
  EXPECT_NE(limit.output.find("BERTH_TRACE_LIMIT=much"), std::string::npos) << limit.output;
  const Ran device = helper("thread-exit", "BERTH_TRACE=/dev/full");
  EXPECT_EQ(device.exit_code, 0);
  EXPECT_NE(device.output.find("no regular file of this user"), std::string::npos) << device.output;
  // The limit of `ulimit -f` stands for a full disk.
  const std::string file = ::testing::TempDir() + "berth_process_full_" + std::to_string(getpid());
  const Ran full = helper("be-traced", "ulimit -f 16; BERTH_TRACE=" + file);
  std::remove(file.c_str());
  EXPECT_EQ(full.exit_code, 0);
  EXPECT_NE(full.output.find("the trace is cut short"), std::string::npos) << full.output;
}

TEST(Process, TheLimitOfATraceIsKept) {
  const auto [ran, trace, children] = traced_helper("be-traced", "BERTH_TRACE_LIMIT=128KiB");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_GT(trace.dropped, 50000U);
  EXPECT_GT(trace.events.size(), 10000U);
  EXPECT_TRUE(trace.complete);
}

TEST(Process, ForksOfATracedProcessDoNotHang) {
  const auto [ran, trace, children] = traced_helper("fork-while-busy");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_TRUE(trace.complete);
}

}  // namespace
}  // namespace berth::testing

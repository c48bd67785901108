// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "observe/live_file.h"
#include "support/everything.h"
#include "support/process.h"

// Observation of a program that is enabled by environment variables alone.
namespace berth::testing {

using namespace internal::observe;
namespace {

class ObservedProcess : public ::testing::Test {
 protected:
  ObservedProcess() : folder_("/dev/shm/berth-observed-" + std::to_string(getpid())) {
    std::filesystem::create_directory(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    setenv("BERTH_LIVE_DIR", (folder_ + "/live").c_str(), 1);
  }
  ~ObservedProcess() override {
    std::filesystem::remove_all(folder_);
    unsetenv("BERTH_LIVE_DIR");
  }
  static Ran helper(const std::string& environment, const std::string& arguments) {
    return run_command(environment + " " BERTH_OBSERVE_HELPER " " + arguments);
  }
  std::vector<ProcessSnapshot> snapshots() const {
    std::vector<ProcessSnapshot> all;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (!file.is_regular_file()) continue;
      std::ostringstream text;
      text << std::ifstream(file.path()).rdbuf();
      all.push_back(read_snapshot(text.str(), file.path().string()));
    }
    return all;
  }

  const std::string folder_;
};

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++count;
  return count;
}

TEST_F(ObservedProcess, ThatLeaksNothingSaysSo) {
  const Ran ran = helper("BERTH_LEAKS=1", "plant");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.output, "berth: no leaks\n");
  EXPECT_EQ(helper("", "plant storage").output, "") << "nobody asked";
  EXPECT_EQ(helper("BERTH_LEAKS=0", "plant storage").output, "");
}

TEST_F(ObservedProcess, ThatLeaksNamesEachLeakAndNoOther) {
  const struct {
    const char* kind;
    const char* expected;
    std::size_t leaks;
  } cases[] = {{"storage", "storage f32 [2, 3], 24 B on cpu:0, tag planted", 1},
               {"view", "view f32 [2, 4] strides [4, 1], 128 B on cpu:0, tag planted", 1},
               {"shared", "storage f32 [1024], 4 KiB on shared:0, tag planted", 1},
               {"mapped", "storage f32 [3, 5], 60 B on cpu:0, file", 1},
               {"named", "storage f64 [7], 56 B on shared:0, shared", 1},
               {"exported", "exported i32 [5], 20 B on cpu:0, tag planted", 1},
               {"imported", "storage i32 [5], 20 B on cpu:0, dlpack", 2},
               {"outside", "storage f32 [2, 3], 24 B on cpu:0, external", 1},
               {"block", "block, 100 B on cpu:0, tag planted", 1},
               {"buffer", "buffer, 100 B on cpu:0, tag planted", 1}};
  for (const auto& one : cases) {
    const Ran ran = helper("BERTH_LEAKS=1", std::string("plant ") + one.kind);
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_NE(ran.output.find(one.expected), std::string::npos) << one.kind << ": " << ran.output;
    EXPECT_EQ(count_of(ran.output, "berth:   "), one.leaks) << ran.output;
    EXPECT_EQ(count_of(ran.output, "held by"), one.leaks);
    EXPECT_EQ(count_of(ran.output, "at helper.cc:"), one.leaks) << ran.output;
  }
  const Ran all = helper("BERTH_LEAKS=1 BERTH_STACK_DEPTH=4", "plant storage view block");
  EXPECT_EQ(count_of(all.output, "berth:   "), 3U) << all.output;
  EXPECT_NE(all.output.find("+0x"), std::string::npos) << all.output;
}

TEST_F(ObservedProcess, ReportsOnceWhenItHasForked) { EXPECT_EQ(count_of(helper("BERTH_LEAKS=1", "fork").output, "1 leak"), 1U); }

TEST_F(ObservedProcess, SavesASnapshotOnEachSignal) {
  const Ran ran = helper("BERTH_SNAPSHOT_SIGNAL=USR2 BERTH_SNAPSHOT_DIR=" + folder_, "signal " + folder_);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  const std::vector<ProcessSnapshot> saved = snapshots();
  ASSERT_EQ(saved.size(), 2U);
  for (const ProcessSnapshot& one : saved) {
    EXPECT_EQ(one.reason, "signal");
    EXPECT_EQ(one.program, "observe_helper");
    bool found = false;
    for (const SnapshotGroup& group : group_blocks(one)) found = found || (group.tag == "kept" && group.bytes == 400);
    EXPECT_TRUE(found);
  }
  EXPECT_NE(helper("BERTH_SNAPSHOT_SIGNAL=KILL", "plant").output.find("is not supported; use USR1 or USR2"), std::string::npos);
}

TEST_F(ObservedProcess, SavesASnapshotOnASignalWhenItHasClosedAllDescriptors) {
  const Ran ran = helper("BERTH_SNAPSHOT_SIGNAL=USR2 BERTH_SNAPSHOT_DIR=" + folder_, "signal-without-descriptors " + folder_);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  std::filesystem::remove(folder_ + "/strange");
  EXPECT_EQ(snapshots().size(), 2U);
}

TEST_F(ObservedProcess, SavesASnapshotWhenMemoryIsRefusedAndStopsAtTen) {
  const Ran ran = helper("BERTH_SNAPSHOT_ON_OOM=" + folder_, "oom 30");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  const std::vector<ProcessSnapshot> saved = snapshots();
  ASSERT_EQ(saved.size(), 10U);
  EXPECT_NE(saved[0].reason.find("1 MiB"), std::string::npos) << saved[0].reason;
  const std::vector<SnapshotGroup> groups = group_blocks(saved[0]);
  ASSERT_FALSE(groups.empty());
  EXPECT_EQ(groups[0].tag, "greedy");
  EXPECT_NE(helper("BERTH_SNAPSHOT_ON_OOM=" + folder_ + "/nowhere", "oom 1").output.find("no snapshot"), std::string::npos);
}

TEST_F(ObservedProcess, WritesItsProfileWhenItExits) {
  const std::string path = folder_ + "/profile.json";
  EXPECT_EQ(helper("BERTH_PROFILE=" + path, "plant storage").exit_code, 0);
  const nlohmann::json read = nlohmann::json::parse(std::ifstream(path));
  bool found = false;
  for (const auto& row : read["tags"]) found = found || (row["tag"] == "planted" && row["bytes"] == 24);
  EXPECT_TRUE(found) << read;
  EXPECT_TRUE(read["sites"].empty());
  EXPECT_EQ(helper("BERTH_STACK_DEPTH=3 BERTH_PROFILE=" + path, "plant storage").exit_code, 0);
  const nlohmann::json deep = nlohmann::json::parse(std::ifstream(path));
  ASSERT_FALSE(deep["sites"].empty());
  EXPECT_NE(deep["sites"].dump().find("+0x"), std::string::npos) << deep["sites"];
}

TEST_F(ObservedProcess, SaysWhichDepthsOfStacksThereAre) {
  for (const std::string wrong : {"13", "-1", "deep", "3x"}) {
    const Ran ran = helper("BERTH_LEAKS=1 BERTH_STACK_DEPTH=" + wrong, "plant");
    EXPECT_NE(ran.output.find("BERTH_STACK_DEPTH=" + wrong + " is not a number from 0 to 12"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("no leaks"), std::string::npos) << "the program runs on";
  }
}

TEST_F(ObservedProcess, WritesATraceWithItsTags) {
  const std::string path = folder_ + "/%p.trace";
  EXPECT_EQ(helper("BERTH_TRACE=" + path, "plant storage block").exit_code, 0);
  Trace trace;
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    std::ostringstream bytes;
    bytes << std::ifstream(file.path(), std::ios::binary).rdbuf();
    trace = read_trace(bytes.str(), file.path().string());
  }
  EXPECT_TRUE(trace.complete);
  EXPECT_EQ(trace.words, (std::vector<std::string>{"", "planted"}));
}

// Starts a helper in the background by a shell, which prints its process id. Returns its live state once that
// shows all of its blocks.
std::optional<LiveProcess> start_and_see(const std::string& folder, const std::string& arguments) {
  const Ran ran = run_command("BERTH_LIVE=1 " BERTH_OBSERVE_HELPER " stay " + arguments + " > " + folder +
                              "/said 2>&1 & echo $!; while ! grep -q ready " + folder + "/said; do sleep 0.05; done");
  const std::int64_t process = std::stoll(ran.output);
  std::optional<LiveProcess> seen;
  const auto shows_all = [&] { return seen && !seen->pools.empty() && seen->pools[0].stats.live_blocks == 2; };
  for (int i = 0; i < 500 && !shows_all(); ++i) {
    seen = read_live(process);
    usleep(20'000);
  }
  return seen;
}

std::size_t count_files(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST_F(ObservedProcess, ShowsItselfToTheSameUserUntilItIsKilled) {
  const std::optional<LiveProcess> seen = start_and_see(folder_, "");
  ASSERT_TRUE(seen);
  const std::int64_t process = seen->process;
  EXPECT_FALSE(seen->elsewhere);
  EXPECT_EQ(seen->program, "observe_helper");
  ASSERT_EQ(seen->pools.size(), 1U);
  EXPECT_EQ(seen->pools[0].device, "cpu:0");
  ASSERT_FALSE(seen->pools[0].tags.empty());
  EXPECT_EQ(seen->pools[0].tags[0].tag, "kept");
  EXPECT_EQ(seen->pools[0].tags[0].bytes, 4000U);
  for (const auto& file : std::filesystem::directory_iterator(folder_ + "/live"))
    EXPECT_EQ(file.status().permissions() & std::filesystem::perms(077), std::filesystem::perms::none);
  run_command("kill -9 " + std::to_string(process));
  for (int i = 0; i < 500 && read_live(process); ++i) usleep(20'000);
  EXPECT_FALSE(read_live(process));
  EXPECT_TRUE(live_processes().empty());
  EXPECT_EQ(count_files(folder_ + "/live"), 0U) << "what a dead process has left is removed";
}

// In the folder that everybody has by default, as a user that nobody else is.
TEST_F(ObservedProcess, LeavesNoFolderBehind) {
  const std::string user = std::to_string(1'000'000 + getpid());
  const std::string as_user = "setpriv --reuid " + user + " --regid " + user + " --clear-groups ";
  if (geteuid() != 0 || run_command(as_user + "true").exit_code != 0)
    GTEST_SKIP() << "only root can be a user without a folder, with setpriv";
  const std::string helper = "env -u BERTH_LIVE_DIR BERTH_LIVE=1 " + as_user + BERTH_OBSERVE_HELPER;
  EXPECT_EQ(run_command(helper + " plant").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists("/dev/shm/berth-live-" + user));
}

TEST_F(ObservedProcess, ShowsItselfAgainWhenItHasClosedAllDescriptors) {
  const std::optional<LiveProcess> seen = start_and_see(folder_, "without-descriptors");
  ASSERT_TRUE(seen);
  std::uint64_t renewals = seen->renewals;
  for (int i = 0; i < 500 && renewals < seen->renewals + 3; ++i) {
    if (const auto again = read_live(seen->process)) renewals = again->renewals;
    usleep(20'000);
  }
  EXPECT_GE(renewals, seen->renewals + 3) << "it is renewed, and readers find that its process lives";
  run_command("kill -9 " + std::to_string(seen->process));
}

TEST_F(ObservedProcess, ShowsAsManyPoolsAsThereIsRoomForAndCountsTheOthers) {
  const std::optional<LiveProcess> seen = start_and_see(folder_, "with-many-pools");
  ASSERT_TRUE(seen);
  EXPECT_GT(seen->pools.size(), 100U);
  EXPECT_EQ(seen->pools.size() + seen->pools_left_out, 1001U);
  run_command("kill -9 " + std::to_string(seen->process));
}

TEST_F(ObservedProcess, IsToldFromOneOfTheSameNumberInAnotherContainer) {
  const std::optional<LiveProcess> seen = start_and_see(folder_, "");
  ASSERT_TRUE(seen);
  const LiveName other{seen->process, LiveName::own().space + 1};
  {
    Result<LiveFile> page = LiveFile::make(other);
    ASSERT_TRUE(page.ok());
    page->write(R"({"program": "elsewhere"})");
    const std::vector<LiveProcess> both = live_processes();
    ASSERT_EQ(both.size(), 2U);
    EXPECT_EQ(both[0].process, both[1].process);
    EXPECT_EQ(both[0].program, "observe_helper");
    EXPECT_EQ(both[1].program, "elsewhere");
    EXPECT_TRUE(both[1].elsewhere);
    EXPECT_EQ(read_live(seen->process)->program, "observe_helper") << "one of this container comes first";
    run_command("kill -9 " + std::to_string(seen->process));
    for (int i = 0; i < 500 && live_processes().size() != 1; ++i) usleep(20'000);
    EXPECT_EQ(read_live(seen->process)->program, "elsewhere");
  }
  EXPECT_TRUE(live_processes().empty());
}

}  // namespace
}  // namespace berth::testing

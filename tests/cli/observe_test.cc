// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/everything.h"
#include "support/process.h"

// `berth snapshot` and `berth top`.
namespace berth::testing {
namespace {

Ran command(const std::string& arguments) { return run_command(std::string(BERTH_CLI " ") + arguments); }

class CliSnapshot : public ::testing::Test {
 protected:
  CliSnapshot() : folder_("/dev/shm/berth-cli-observe-" + std::to_string(getpid())) {
    std::filesystem::create_directory(folder_);
    const auto memory = pool("cpu");
    const Block small = memory->allocate({.bytes = 1000, .tag = "small"});
    before_ = save_snapshot(folder_ + "/before.json");
    const Block large = memory->allocate({.bytes = 3_MiB, .tag = "large"});
    const Block odd = memory->allocate({.bytes = 1, .tag = "\x1b[31modd\n"});
    after_ = save_snapshot(folder_ + "/after.json");
    memory->deallocate(small);
    memory->deallocate(large);
    memory->deallocate(odd);
  }
  ~CliSnapshot() override { std::filesystem::remove_all(folder_); }

  const std::string folder_;
  std::string before_;
  std::string after_;
};

TEST_F(CliSnapshot, ShowsPoolsAndHolders) {
  const Ran shown = command("snapshot show " + after_);
  EXPECT_EQ(shown.exit_code, 0);
  for (const char* const expected : {"asked", "pool", "large", "3 MiB", "small"})
    EXPECT_NE(shown.output.find(expected), std::string::npos) << shown.output;
  EXPECT_EQ(shown.output.find('\x1b'), std::string::npos) << "what a tag holds does not reach the terminal";
  const nlohmann::json read = nlohmann::json::parse(command("snapshot show --json " + after_).output);
  EXPECT_EQ(read["holders"][0]["tag"], "large");
  EXPECT_EQ(read["holders"][0]["bytes"], 3_MiB);
  EXPECT_NE(command("snapshot show --csv " + after_).output.find(",large,"), std::string::npos);
  EXPECT_NE(command("snapshot show --top 1 " + after_).output.find("and 2 more"), std::string::npos);
}

TEST_F(CliSnapshot, SaysWhatChanged) {
  const Ran shown = command("snapshot diff " + before_ + " " + after_);
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_NE(shown.output.find("+3 MiB"), std::string::npos) << shown.output;
  EXPECT_EQ(shown.output.find("small"), std::string::npos);
  const nlohmann::json read = nlohmann::json::parse(command("snapshot diff --json " + before_ + " " + after_).output);
  ASSERT_EQ(read["changes"].size(), 2U);
  EXPECT_EQ(read["changes"][0]["bytes"], 3_MiB);
  EXPECT_NE(command("snapshot diff " + before_ + " " + before_).output.find("no difference"), std::string::npos);
}

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(CliSnapshot, WritesAPageBesideItOrWhereItIsTold) {
  const Ran beside = command("snapshot html " + after_);
  EXPECT_EQ(beside.exit_code, 0) << beside.output;
  EXPECT_EQ(beside.output, folder_ + "/after.html\n");
  const std::string page = content_of(folder_ + "/after.html");
  for (const char* const expected : {"<!doctype html>", "Content-Security-Policy", "after.json", "small", "3 MiB"})
    EXPECT_NE(page.find(expected), std::string::npos) << expected;
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  const Ran told = command("snapshot html --out " + folder_ + "/told.html " + before_);
  EXPECT_EQ(told.output, folder_ + "/told.html\n");
  EXPECT_EQ(content_of(folder_ + "/told.html").find("3 MiB"), std::string::npos);
  EXPECT_EQ(command("snapshot html --out " + folder_ + "/no/such/folder.html " + after_).exit_code, 2);
}

TEST_F(CliSnapshot, RefusesWhatIsNoSnapshot) {
  for (const std::string& what : {std::string("show "), std::string("html "), "diff " + before_ + " "}) {
    EXPECT_EQ(command("snapshot " + what + BERTH_CLI).exit_code, 1) << what;
    EXPECT_EQ(command("snapshot " + what + folder_ + "/none.json").exit_code, 2) << what;
    EXPECT_EQ(command("snapshot " + what + folder_).exit_code, 2) << what << "a folder cannot be read";
  }
  for (const char* const wrong : {"", "tell x", "show", "diff x", "html", "show --top x y", "show --top 1"})
    EXPECT_EQ(command(std::string("snapshot ") + wrong).exit_code, 2) << wrong;
}

TEST_F(CliSnapshot, ATraceOfAProgramIsShownByItsTags) {
  const std::string trace = folder_ + "/planted.trace";
  EXPECT_EQ(run_command("BERTH_TRACE=" + trace + " " BERTH_OBSERVE_HELPER " plant storage").exit_code, 0);
  const Ran ran = command("replay " + trace + " --html " + folder_ + "/planted.html");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_NE(content_of(folder_ + "/planted.html").find("\"planted\""), std::string::npos);
}

TEST(CliTop, ShowsAProcessThatExposesItselfAndSaysWhenThereIsNone) {
  const std::string folder = "/dev/shm/berth-cli-top-" + std::to_string(getpid());
  const std::string live = "BERTH_LIVE_DIR=" + folder + " ";
  const Ran none = run_command(live + BERTH_CLI " top --once");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.output.find("BERTH_LIVE=1"), std::string::npos) << none.output;
  const Ran shown = run_command(live + "BERTH_LIVE=1 " BERTH_OBSERVE_HELPER " stay > /dev/null 2>&1 & pid=$!; for i in $(seq 200); do " +
                                live + BERTH_CLI " top --json $pid 2> /dev/null | grep -q kept && break; sleep 0.05; done; " + live +
                                BERTH_CLI " top --once $pid; " + live + BERTH_CLI " top --once observe_helper; kill -9 $pid");
  EXPECT_NE(shown.output.find("observe_helper"), std::string::npos) << shown.output;
  EXPECT_NE(shown.output.find("kept 3.91 KiB"), std::string::npos) << shown.output;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/process.h"

// `berth plan` with --nodes and --after, and `berth verify` of several plans.
namespace berth::testing {
namespace {

// Value 0 is read by the first node and the last.
constexpr const char* kRanges = "# outputs: 4\n0 Make | | 500\n1 Grow | 0 | 1000\n2 Shrink | 1 | 10\n3 Grow | 2 | 1000\n4 End | 3 0 | 10\n";

class CliPlanRanges : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "graph.txt") << kRanges;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Ran berth(const std::string& arguments) const { return run_command("cd " + folder_.string() + " && " BERTH_CLI " " + arguments); }
  static void expect_says(const Ran& ran, int exit_code, std::initializer_list<const char*> texts) {
    EXPECT_EQ(ran.exit_code, exit_code) << ran.output;
    for (const char* text : texts) EXPECT_NE(ran.output.find(text), std::string::npos) << text << " in:\n" << ran.output;
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("berth_ranges_" + std::to_string(getpid()));
};

TEST_F(CliPlanRanges, ContinueFromAFileAndAreVerifiedTogether) {
  ASSERT_EQ(berth("plan graph.txt --nodes 0:3 --out first.json").exit_code, 0);
  ASSERT_EQ(berth("plan graph.txt --after first.json --out second.json").exit_code, 0);
  const nlohmann::json second = nlohmann::json::parse(std::ifstream(folder_ / "second.json"));
  EXPECT_EQ(second["plan"]["nodes"], nlohmann::json({3, 5}));
  EXPECT_EQ(second["plan"]["places"][0]["sharing"], "kept");
  expect_says(berth("verify second.json"), 0, {"✔"});
  expect_says(berth("verify first.json second.json"), 0, {"nodes 0 to 3", "nodes 3 to 5", "what the ones before it left"});
  EXPECT_EQ(nlohmann::json::parse(berth("verify --json first.json second.json").output)["valid"], true);
}

TEST_F(CliPlanRanges, ThatDoNotContinueOneAnotherAreRefused) {
  ASSERT_EQ(berth("plan graph.txt --nodes :3 --out first.json").exit_code, 0);
  ASSERT_EQ(berth("plan graph.txt --nodes 3: --out second.json").exit_code, 0);
  expect_says(berth("verify first.json second.json"), 1, {"does not keep it", "--after"});
  const nlohmann::json json = nlohmann::json::parse(berth("verify --json first.json second.json 2>/dev/null").output);
  EXPECT_EQ(json["valid"], false);
  EXPECT_FALSE(json["problems"].empty());
  expect_says(berth("plan graph.txt --nodes 2: --after first.json"), 2, {"begin at node 3"});
  std::ofstream(folder_ / "other.txt") << "0 Make | | 500\n1 Grow | 0 | 1000\n";
  expect_says(berth("plan other.txt --after first.json"), 2, {"another graph"});
  expect_says(berth("verify first.json graph.txt"), 1, {"help"});
  EXPECT_EQ(berth("verify first.json nothing.json").exit_code, 2);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/process.h"

// `berth plan` with --order, --budget, --arena and --max-chunk.
namespace berth::testing {
namespace {

// Two branches with a large value each, both computed first; and a value that lives to the end.
constexpr const char* kGraph =
    "# outputs: 6\n"
    "0 Keep | | 500\n1 Grow | 0 | 1000\n2 Grow | 0 | 1000\n3 Shrink | 1 | 10\n4 Shrink | 2 | 10\n5 Join | 3 4 | 10\n6 End | 5 0 | 10\n";

class CliPlanOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "graph.txt") << kGraph;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  Ran plan(const std::string& arguments) const { return run_command(BERTH_CLI " plan " + path("graph.txt") + " " + arguments); }
  nlohmann::json json(const std::string& arguments) const { return nlohmann::json::parse(plan("--json " + arguments).output); }
  static void expect_says(const Ran& ran, int exit_code, std::initializer_list<const char*> texts) {
    EXPECT_EQ(ran.exit_code, exit_code) << ran.output;
    for (const char* text : texts) EXPECT_NE(ran.output.find(text), std::string::npos) << text << " in:\n" << ran.output;
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("berth_order_" + std::to_string(getpid()));
};

TEST_F(CliPlanOrder, ABetterOrderIsTakenShownAndVerified) {
  EXPECT_EQ(json("")["peak_bytes"], 2510);
  EXPECT_EQ(json("")["reordered"], false);
  const nlohmann::json best = json("--order best --full");
  EXPECT_EQ(best["peak_bytes"], 1520);
  EXPECT_EQ(best["reordered"], true);
  EXPECT_EQ(best["order"].size(), 7U);
  EXPECT_GE(best["orders"].size(), 2U);
  expect_says(plan("--order best --out " + path("plan.json")), 0, {"given", "most live", "best", "1.48 KiB"});
  expect_says(run_command(BERTH_CLI " verify " + path("plan.json")), 0, {"1.48 KiB"});
  expect_says(plan("--order fastest"), 2, {"fastest", "given, best"});
}

TEST_F(CliPlanOrder, ABudgetThatIsMissedComesWithProposals) {
  expect_says(plan("--budget 2600"), 0, {"it fits"});
  expect_says(plan("--order best --budget 1510"), 1, {"does not fit", "more than 1.47 KiB"});
  const nlohmann::json answer = json("--budget 2100 --bandwidth 1KiB");
  EXPECT_EQ(answer["fits"], false);
  EXPECT_EQ(answer["over_bytes"], 410);
  ASSERT_FALSE(answer["proposals"].empty());
  for (const nlohmann::json& proposal : answer["proposals"]) {
    EXPECT_LE(proposal["plan"]["arenas"][0]["bytes"], 2100);
    EXPECT_FALSE(proposal["items"].empty());
  }
  expect_says(plan("--budget 2100 --out " + path("plan.json")), 1, {"does not fit", "item"});
  expect_says(run_command(BERTH_CLI " verify " + path("plan.json")), 0, {"plan.json"});
  expect_says(plan("--budget little"), 2, {"byte count"});
  expect_says(plan("--budget 100 --bandwidth 0"), 2, {"bandwidth"});
  expect_says(plan("--move-to cpu:1"), 2, {"--budget"});
}

TEST_F(CliPlanOrder, ArenasAreFilledInTheirOrder) {
  const nlohmann::json made = json("--arena fast=1200 --arena slow");
  ASSERT_EQ(made["chunks"].size(), 2U);
  EXPECT_EQ(made["chunks"][0]["name"], "fast");
  EXPECT_LE(made["chunks"][0]["bytes"], 1200);
  expect_says(plan("--arena fast=1200 --arena slow"), 0, {"fast", "slow", "chunk"});
  expect_says(plan("--arena fast=1200 --arena slow=100"), 1, {"does not fit"});
  expect_says(plan("--arena =5"), 2, {"no name"});
  EXPECT_EQ(json("--max-chunk 1100")["chunks"].size(), 3U);
  expect_says(plan("--max-chunk 900"), 1, {"does not fit"});
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/samples/sample_models.h"
#include "support/process.h"

// `berth plan` and `berth verify`, from files to exit codes.
namespace berth::testing {

using namespace internal;
using namespace internal::cli::samples;
namespace {

constexpr const char* kLives = "id,lower,upper,size\na,0,2,1000\nb,1,3,2000\nc,2,4,1000\n";

class CliPlan : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  std::string read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(folder_ / name, std::ios::binary).rdbuf();
    return text.str();
  }
  static Ran plan(const std::string& arguments) { return run_command(BERTH_CLI " plan " + arguments); }
  static Ran verify(const std::string& arguments) { return run_command(BERTH_CLI " verify " + arguments); }
  static void expect_says(const Ran& ran, int exit_code, std::initializer_list<const char*> texts) {
    EXPECT_EQ(ran.exit_code, exit_code) << ran.output;
    for (const char* text : texts) EXPECT_NE(ran.output.find(text), std::string::npos) << text << " in:\n" << ran.output;
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("berth_plan_" + std::to_string(getpid()));
};

TEST_F(CliPlan, PrintsATableAPictureAndThePeak) {
  expect_says(plan(file("lives.csv", kLives)), 0,
              {"3 buffers", "without reuse  3.91 KiB", "lower bound    2.93 KiB", "the bound", "at the peak", "value 'b'", "optimal", "┤"});
}

TEST_F(CliPlan, PrintsOneJsonObject) {
  const Ran ran = plan(file("lives.csv", kLives) + " --json --full");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const nlohmann::json json = nlohmann::json::parse(ran.output);
  EXPECT_EQ(json["buffers"], 3);
  EXPECT_EQ(json["naive_bytes"], 4000);
  EXPECT_EQ(json["lower_bound_bytes"], 3000);
  EXPECT_EQ(json["peak_bytes"], 3000);
  EXPECT_EQ(json["ratio"], 1);
  EXPECT_EQ(json["outcome"], "optimal");
  EXPECT_EQ(json["unplanned"], 0);
  EXPECT_TRUE(json["time_ms"].is_number());
  EXPECT_TRUE(json["strategy"].is_string());
  ASSERT_EQ(json["placements"].size(), 3U);
  EXPECT_EQ(json["placements"][1]["name"], "b");
  EXPECT_FALSE(nlohmann::json::parse(plan(file("lives.csv", kLives) + " --json").output).contains("placements"));
}

TEST_F(CliPlan, CountsWhatHasNoLocationByReason) {
  const std::string graph = file("graph.json", R"({"berth": "graph", "values": [{"name": "x", "bytes": 8, "external": true},
      {"name": "w", "bytes": 8, "external": true}, {"name": "a", "dynamic": true}, {"name": "b"}, {"name": "y", "bytes": 8, "output": true}],
      "nodes": [{"inputs": ["x", "w"], "outputs": ["a", "b"]}, {"inputs": ["a", "b"], "outputs": ["y"]}]})");
  expect_says(plan(graph), 0, {"not planned: 2 external, 1 dynamic, 1 unknown_size"});
  const nlohmann::json json = nlohmann::json::parse(plan(graph + " --json").output);
  EXPECT_EQ(json["unplanned"], 4);
  EXPECT_EQ(json["unplanned_by_reason"].dump(), R"({"dynamic":1,"external":2,"never_written":0,"outside_range":0,"unknown_size":1})");
}

TEST_F(CliPlan, SaysWhatEdgesBuyInAParallelPlan) {
  const std::string graph =
      file("graph.json", R"({"berth": "graph", "values": [{"bytes": 1024}, {"bytes": 1024}, {"bytes": 1024, "output": true},
      {"bytes": 1024}, {"bytes": 1024}, {"bytes": 1024, "output": true}],
      "nodes": [{"inputs": [], "outputs": [0], "cost": 5}, {"inputs": [0], "outputs": [1]}, {"inputs": [1], "outputs": [2]},
      {"inputs": [], "outputs": [3]}, {"inputs": [3], "outputs": [4]}, {"inputs": [4], "outputs": [5]}]})");
  expect_says(plan(graph + " --parallel 2"), 0, {"in parallel    0 edges added, the longest path 7 (without them 7)", "4 KiB"});
  expect_says(plan(graph + " --parallel 2 --edges 4"), 0, {"saved", "3 KiB"});
  const nlohmann::json json = nlohmann::json::parse(plan(graph + " --parallel 2 --edges 4 --json --full").output);
  EXPECT_EQ(json["peak_bytes"], 3072);
  EXPECT_EQ(json["conservative"], false);
  EXPECT_EQ(json["longest_path_without_edges"], 7);
  EXPECT_EQ(json["trades"].size(), 2U);
  EXPECT_EQ(json["trades"][0]["peak_bytes"], 4096);
  EXPECT_EQ(json["trades"][1]["edges"], json["edges"]);
  EXPECT_EQ(json["trades"][1]["longest_path"], json["longest_path"]);
  EXPECT_EQ(json["added_edges"].size(), json["edges"]);
  EXPECT_EQ(json["colours"].dump(), "[0,0,0,1,1,1]");
  expect_says(plan(graph + " --edges 4"), 2, {"parallel"});
}

TEST_F(CliPlan, ReadsGzipToo) {
  const std::string plain = file("lives.csv", kLives);
  ASSERT_EQ(run_command("gzip -k " + plain).exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(plan(plain + ".gz --json").output)["peak_bytes"], 3000);
}

TEST_F(CliPlan, SlotsAndStrategiesByName) {
  const std::string lives = file("lives.csv", kLives);
  EXPECT_EQ(nlohmann::json::parse(plan(lives + " --json --strategy slots --match-range 0").output)["peak_bytes"], 4000);
  EXPECT_EQ(nlohmann::json::parse(plan(lives + " --json --strategy size_best").output)["strategy"], "size_best");
  expect_says(plan(lives + " --all"), 0, {"slots", "time_first", "match range"});
  expect_says(plan(lives + " --strategy fastest"), 2, {"no", "fastest", "best, offsets, slots"});
  expect_says(plan(lives + " --strategy offsets --match-range 3"), 2, {"help"});
}

TEST_F(CliPlan, ACapacityThatDoesNotFitExitsWithOne) {
  const std::string lives = file("lives.csv", kLives);
  EXPECT_EQ(plan(lives + " --capacity 3000").exit_code, 0);
  expect_says(plan(lives + " --capacity 2999"), 1, {"does not fit"});
  EXPECT_EQ(nlohmann::json::parse(plan(lives + " --json --capacity 1KiB").output)["outcome"], "infeasible");
  expect_says(plan(lives + " --capacity much"), 2, {"byte count"});
}

TEST_F(CliPlan, VerifiesWhatItWroteAndCatchesWhatWasChanged) {
  const std::string out = (folder_ / "plan.json").string();
  ASSERT_EQ(plan(file("lives.csv", kLives) + " --out " + out).exit_code, 0);
  expect_says(verify(out), 0, {"optimal"});
  EXPECT_EQ(nlohmann::json::parse(verify(out + " --json").output)["valid"], true);
  nlohmann::json changed = nlohmann::json::parse(read("plan.json"));
  for (nlohmann::json& location : changed["plan"]["places"]) location["offset"] = 0;
  expect_says(verify(file("wrong.json", changed.dump())), 1, {"over value 'a'", "help"});
  expect_says(verify(file("none.json", "{}")), 1, {"help"});
  EXPECT_EQ(verify("nothing.json").exit_code, 2);
  EXPECT_EQ(nlohmann::json::parse(plan(out + " --json").output)["peak_bytes"], 3000) << "its graph can be planned again";
}

TEST_F(CliPlan, WritesPictures) {
  const std::string svg = (folder_ / "plan.svg").string();
  const std::string html = (folder_ / "plan.html").string();
  ASSERT_EQ(plan(file("lives.csv", kLives) + " --svg " + svg + " --html " + html).exit_code, 0);
  EXPECT_NE(read("plan.svg").find("<svg"), std::string::npos);
  EXPECT_NE(read("plan.html").find("<html"), std::string::npos);
  expect_says(plan(file("lives.csv", kLives) + " --svg /nowhere/at/all.svg"), 2, {"writing", "help"});
}

TEST_F(CliPlan, PlansAModelWithSymbols) {
  const std::string model = file("model.onnx", internal::cli::samples::sample_residual_network({.picture = 64}));
  expect_says(plan(model), 2, {"N", "--bind"});
  const nlohmann::json one = nlohmann::json::parse(plan(model + " --json --bind N=1").output);
  const nlohmann::json two = nlohmann::json::parse(plan(model + " --json --bind N=2").output);
  EXPECT_EQ(two["lower_bound_bytes"], 2 * one["lower_bound_bytes"].get<std::size_t>());
  expect_says(plan(model + " --bind N"), 2, {"batch=8"});
  expect_says(plan(model + " --bind N=1,N=2"), 2, {"bound"});
  expect_says(plan(model + " --bind M=2"), 2, {"M"});
  EXPECT_EQ(plan(model + " --allow-unknown").exit_code, 0);
}

TEST_F(CliPlan, ReadsExternalDataBesideTheModelAndNowhereElse) {
  const std::string model = file("model.onnx", internal::cli::samples::sample_external_data());
  expect_says(plan(model + " --bind N=1"), 1, {"weights.bin"});
  file("weights.bin", std::string(8192, '\0'));
  EXPECT_EQ(plan(model + " --bind N=1").exit_code, 0);
  std::filesystem::rename(folder_ / "weights.bin", folder_ / "elsewhere.bin");
  std::filesystem::create_symlink("elsewhere.bin", folder_ / "weights.bin");
  expect_says(plan(model + " --bind N=1"), 1, {"link"});
}

TEST_F(CliPlan, SaysWhereAFileIsWrong) {
  expect_says(plan(file("lives.csv", "id,lower,upper,size\na,3,2,10\n")), 1, {"line 2", "help"});
  expect_says(plan(file("model.onnx", "\x08")), 1, {"help"});
  expect_says(plan(file("graph.json", "{\"berth\": \"graph\"}")), 1, {"help"});
  expect_says(plan(file("over.csv", "id,lower,upper,size\na,0,1,3458764513820540928\nculprit,0,1,3458764513820540928\n")), 1,
              {"culprit", "help"});
  expect_says(plan(file("cycle.txt", "0 a | 1 | 8\n1 b | 0 | 8\n")), 1, {"cycle"});
  EXPECT_EQ(plan((folder_ / "nothing.csv").string()).exit_code, 2);
  EXPECT_EQ(plan("").exit_code, 2);
}

TEST_F(CliPlan, BranchesMayRunAtOnce) {
  const std::string model = file("model.onnx", internal::cli::samples::sample_transformer({.layers = 1}));
  const nlohmann::json json = nlohmann::json::parse(plan(model + " --json --bind batch=1,seq=16 --colours 2").output);
  EXPECT_EQ(json["parallel"], 2);
  EXPECT_TRUE(json["edges"].is_number());
}

}  // namespace
}  // namespace berth::testing

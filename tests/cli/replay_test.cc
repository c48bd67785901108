// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/process.h"

// `berth replay`, from files to exit codes.
namespace berth::testing {
namespace {

constexpr const char* kSmall = "op,id,bytes,stream\na,1,1000,0\na,2,3000,0\nf,1,0,0\na,3,1,0\n";

class CliReplay : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }

  static Ran replay(const std::string& arguments, const std::string& environment = "") {
    return run_command(environment + " " BERTH_CLI " replay " + arguments);
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("berth_replay_" + std::to_string(getpid()));
};

TEST_F(CliReplay, PrintsATable) {
  const Ran ran = replay(file("small.csv", kSmall) + " --strategy direct");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  for (const char* expected : {"4 events", "3.91 KiB live", "direct", "per event", "1.000"})
    EXPECT_NE(ran.output.find(expected), std::string::npos) << ran.output;
}

TEST_F(CliReplay, PrintsOneJsonObject) {
  const Ran ran = replay(file("small.csv", kSmall) + " --json --strategy direct --touch --scale 2 --threads 2");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const nlohmann::json json = nlohmann::json::parse(ran.output);
  for (const char* number : {"events", "ns_per_event", "p50_ns", "p99_ns", "p999_ns", "peak_live_bytes", "peak_committed_bytes", "ratio",
                             "commits", "decommits", "wall_ms"})
    EXPECT_TRUE(json[number].is_number()) << number << ran.output;
  EXPECT_EQ(json["device"], "cpu:0");
  EXPECT_EQ(json["strategy"], "direct");
  EXPECT_EQ(json["peak_live_bytes"], 4000) << "two threads, half the size";
  EXPECT_EQ(json["events"], 4);
}

TEST_F(CliReplay, ReadsGzipToo) {
  const std::string plain = file("small.csv", kSmall);
  ASSERT_EQ(run_command("gzip -k " + plain).exit_code, 0);
  const Ran ran = replay(plain + ".gz --json");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(nlohmann::json::parse(ran.output)["peak_live_bytes"], 4000);
  ASSERT_EQ(run_command("head -c 40 " + plain + ".gz > " + plain + ".cut.gz").exit_code, 0);
  const Ran cut = replay(plain + ".cut.gz");
  EXPECT_EQ(cut.exit_code, 1) << cut.output;
  EXPECT_NE(cut.output.find("truncated"), std::string::npos) << cut.output;
}

TEST_F(CliReplay, WritesAPage) {
  const std::string page = (folder_ / "small.html").string();
  const Ran ran = replay(file("small.csv", kSmall) + " --once --html " + page);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  std::ifstream in(page);
  const std::string written{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(written.rfind("<!doctype html>", 0), 0U);
  EXPECT_NE(written.find("<h1>small.csv</h1><p>4 events, replayed with pool on cpu:0</p>"), std::string::npos);
  EXPECT_EQ(replay(file("small.csv", kSmall) + " --once --html " + (folder_ / "no/such/folder.html").string()).exit_code, 2);
  EXPECT_EQ(replay(file("small.csv", kSmall) + " --compare --html " + page).exit_code, 2) << "a page is of one strategy";
}

TEST_F(CliReplay, ComparesAllStrategies) {
  const std::string path = file("small.csv", kSmall);
  const Ran text = replay(path + " --compare");
  EXPECT_EQ(text.exit_code, 0) << text.output;
  for (const char* expected : {"direct", "arena", "malloc"}) EXPECT_NE(text.output.find(expected), std::string::npos) << text.output;
  const Ran sim = replay(path + " --compare --json --device sim");
  EXPECT_EQ(sim.exit_code, 0) << sim.output;
  const nlohmann::json json = nlohmann::json::parse(sim.output);
  const nlohmann::json& last = json["strategies"].back();
  EXPECT_EQ(last["strategy"], "malloc");
  EXPECT_EQ(last["error"]["error"], "wrong_device") << "a strategy that fails says why";
}

TEST_F(CliReplay, OutOfMemoryIsANoWithItsReport) {
  const std::string path = file("large.csv", "a,1,100000,0\na,2,100000,0\n");
  const std::string small_device = "BERTH_SIM_CAPACITY=128KiB BERTH_SIM_PAGE=4KiB";
  const Ran ran = replay(path + " --device sim --strategy direct", small_device);
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_NE(ran.output.find("would be enough"), std::string::npos) << ran.output;
  const Ran json = replay(path + " --device sim --strategy direct --json 2>/dev/null", small_device);
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(json.output)["report"]["requested_bytes"], 100000) << json.output;
  EXPECT_EQ(replay(path + " --device sim --strategy direct --compare", small_device).exit_code, 2) << "one strategy, or all";
}

TEST_F(CliReplay, SaysWhatIsWrong) {
  const std::string good = file("small.csv", kSmall);
  const struct {
    std::string arguments;
    int exit_code;
    const char* says;
  } wrong[] = {
      {"", 2, "TRACE"},
      {(folder_ / "absent.csv").string(), 2, "No such file"},
      {folder_.string(), 2, "folder"},
      {file("bad.csv", "a,1,8,0\nf,2,0,0\n"), 1, "line 2"},
      {good + " --strategy magic", 2, "use one of"},
      {good + " --device nowhere", 2, "the known kinds"},
      {good + " --device cuda", 1, "cuda"},
      {good + " --device sim --touch", 1, "may not write"},
      {good + " --device sim --strategy malloc", 2, "the host only"},
      {good + " --scale 0", 2, "--scale"},
      {good + " --threads 0", 2, "--threads"},
      {good + " --strategy malloc --compare", 2, "--compare"},
  };
  for (const auto& [arguments, exit_code, says] : wrong) {
    const Ran ran = replay(arguments, "CUDA_VISIBLE_DEVICES=");  // no GPU
    EXPECT_EQ(ran.exit_code, exit_code) << arguments << ": " << ran.output;
    EXPECT_NE(ran.output.find(says), std::string::npos) << arguments << ": " << ran.output;
    EXPECT_NE(ran.output.find("help:"), std::string::npos) << ran.output;
  }
}

TEST_F(CliReplay, ReplaysTheTraceOfTheDemoOnce) {
  const Ran ran = replay("bench/traces/deeplab_infer.csv.gz --json --once");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const nlohmann::json json = nlohmann::json::parse(ran.output);
  EXPECT_EQ(json["events"], 2400);
  EXPECT_TRUE(json["p50_ns"].is_null()) << "the percentiles are of a second run";
}

TEST_F(CliReplay, ReplaysItsOwnTrace) {
  const std::string path = file("small.csv", kSmall);
  const std::string trace = (folder_ / "own.trace").string();
  ASSERT_EQ(replay(path + " --once --strategy direct", "BERTH_TRACE=" + trace).exit_code, 0);
  const Ran ran = replay(trace + " --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const nlohmann::json json = nlohmann::json::parse(ran.output);
  EXPECT_EQ(json["events"], 6) << "what lives at the end is freed";
  EXPECT_EQ(json["peak_live_bytes"], 4000);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["dropped"], 0);
}

// Recorded from real models, where they are installed: BERTH_TRACES names the folder.
TEST_F(CliReplay, ReplaysRecordedModels) {
  const char* const named = std::getenv("BERTH_TRACES");
  const std::filesystem::path traces = named != nullptr ? named : "../shared/data/traces";
  if (!std::filesystem::exists(traces / "unet_infer.csv.gz")) GTEST_SKIP() << "no traces in " << traces;
  const Ran ran = replay((traces / "unet_infer.csv.gz").string() + " --json --scale 16");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const nlohmann::json json = nlohmann::json::parse(ran.output);
  EXPECT_EQ(json["events"], 7960);
  EXPECT_GE(json["ratio"], 1.0);
}

}  // namespace
}  // namespace berth::testing

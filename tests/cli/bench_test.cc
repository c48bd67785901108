// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/bench/cases.h"
#include "cli/bench/sides.h"
#include "support/process.h"

// `berth bench copy`: that it measures everything once and detects a wrong copy; never how long it takes.
// PyTorch is replaced by shell scripts that follow its protocol, or break it.
namespace berth::testing {

using namespace internal;
namespace {

using Json = nlohmann::json;

const std::set<std::string> kTable = {
    "copy/f32",           "convert/f32-bf16",   "convert/bf16-f32", "convert/f32-f16", "convert/f16-f32",
    "convert/f32-f8e4m3", "convert/f8e4m3-f32", "convert/i8-f32",   "convert/f32-i8",  "transpose/f32",
    "transpose/u8",       "transpose_odd/f32",  "transpose_odd/u8", "nhwc/f32",        "transpose_convert/f32-bf16",
    "batch/16KiB",        "small/64B"};

class CliBench : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Ran bench(const std::string& arguments, const std::string& environment = "") {
    return run_command(environment + " " BERTH_CLI " bench copy " + arguments);
  }
  // A program in place of Python that runs the given lines of shell.
  std::string python(const std::string& lines) const {
    const std::filesystem::path path = folder_ / "python";
    std::ofstream(path) << "#!/bin/sh\n" << lines << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return "BERTH_PYTHON=" + path.string();
  }
  // Runs the benchmark with such a peer. Standard error, which comes first in the output, goes to `said`.
  Json beside(const std::string& lines, std::string& said, const std::string& timeout = "60") const {
    const std::filesystem::path note = folder_ / "note";
    const Ran ran = bench("--quick --json --torch-timeout " + timeout + " 2>" + note.string(), python(lines));
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    std::stringstream text;
    text << std::ifstream(note).rdbuf();
    said = text.str();
    return Json::parse(ran.output);
  }
  void expect_no_comparison(const std::string& lines, const std::string& reason, const std::string& timeout = "60") const {
    std::string said;
    const Json results = beside(lines, said, timeout);
    EXPECT_EQ(results.size(), kTable.size()) << lines;
    for (const Json& one : results) EXPECT_TRUE(one["torch_ratio"].is_null()) << lines << ": " << one;
    for (const std::string& word : {reason, std::string("pip install torch"), std::string("BERTH_PYTHON")})
      EXPECT_NE(said.find(word), std::string::npos) << word << " in: " << said;
    EXPECT_EQ(said.find("note:"), said.rfind("note:")) << "said once: " << said;
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("berth_bench_" + std::to_string(getpid()));
};

void expect_figures(const Json& one) {
  EXPECT_GT(one["bytes"], 0) << one;
  EXPECT_GT(one["seconds"], 0) << one;
  EXPECT_GT(one["bytes_per_second"], 0) << one;
  EXPECT_NEAR(one["bytes_per_second"].get<double>() * one["seconds"].get<double>(), one["bytes"].get<double>(), 1e-3) << one;
  if (one["name"] == "small/64B")
    EXPECT_TRUE(one["memcpy_ratio"].is_null()) << one;
  else
    EXPECT_GT(one["memcpy_ratio"], 0) << one;
  EXPECT_EQ(one["large_copy_ratio"].is_number(), one["name"] == "batch/16KiB") << one;
}

TEST_F(CliBench, MeasuresEveryCaseOnce) {
  const Ran ran = bench("--quick --json --no-torch");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  std::multiset<std::string> names;
  for (const Json& one : Json::parse(ran.output)) {
    names.insert(one["name"].get<std::string>());
    expect_figures(one);
    EXPECT_TRUE(one["torch_ratio"].is_null()) << one;
  }
  EXPECT_EQ(names, std::multiset<std::string>(kTable.begin(), kTable.end()));
}

TEST_F(CliBench, FullMeasuresEveryPairInEveryLayoutOnce) {
  const Ran ran = bench("--quick --full --json --no-torch");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  std::map<std::string, int> families;
  std::set<std::string> names;
  for (const Json& one : Json::parse(ran.output)) {
    const std::string name = one["name"];
    EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
    ++families[name.substr(0, name.rfind('/'))];
    expect_figures(one);
  }
  for (const char* layout : {"contiguous", "inner_stride", "transposed", "reversed"})
    EXPECT_EQ(families[std::string("full/") + layout], 11 * 11) << layout;
  for (const char* channels : {"C3", "C64", "C2048"})
    for (const char* way : {"nhwc/", "nchw/"}) EXPECT_EQ(families[way + std::string(channels)], 5) << way << channels;
  EXPECT_TRUE(names.contains("full/reversed/bool-f8e5m2") && names.contains("full/contiguous/i64-i64"));
  EXPECT_EQ(names.size(), kTable.size() + 4 * 121 + 30);
}

TEST_F(CliBench, MeasuresADeviceToo) {
  const Ran ran = bench("--quick --json --no-torch --device sim:0");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  std::set<std::string> names;
  for (const Json& one : Json::parse(ran.output)) {
    EXPECT_TRUE(names.insert(one["name"].get<std::string>()).second) << one;
    EXPECT_GT(one["seconds"], 0) << one;
    EXPECT_GT(one["memcpy_ratio"], 0) << one;
  }
  EXPECT_EQ(names.size(), 1U + 42 + 6 + 5 + 2);
  for (const char* name : {"copy/f32", "convert/f64-f8e5m2", "transpose_odd/u8", "nhwc/f32", "transpose_convert/f32-bf16", "h2d/pageable",
                           "h2d/pinned", "d2h/pool_warm", "d2h/pool_cold", "batch/16KiB"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_NE(bench("--quick --no-torch --device sim:0 --only h2d").output.find("by a plain copy"), std::string::npos);
  const Ran host = bench("--quick --device cpu");
  EXPECT_EQ(host.exit_code, 2) << host.output;
}

TEST_F(CliBench, GoesOnAfterACopyThatFailsAndSaysWhy) {
  const std::string small = "BERTH_SIM_CAPACITY=1MiB BERTH_SIM_PAGE=64KiB";
  const Ran ran = bench("--quick --json --no-torch --device sim:0 --only copy --only h2d/pageable --only nhwc 2>/dev/null", small);
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  int failed = 0;
  for (const Json& one : Json::parse(ran.output)) {
    if (!one.contains("error")) {
      EXPECT_GT(one["seconds"], 0) << one;
      continue;
    }
    ++failed;
    EXPECT_EQ(one["name"], "h2d/pageable") << one;
    EXPECT_NE(one["error"].get<std::string>().find("sim:0"), std::string::npos) << one;
  }
  EXPECT_EQ(failed, 1) << ran.output;
  EXPECT_EQ(bench("--quick --no-torch --device sim:0 --only h2d/pageable", small).exit_code, 1);
}

TEST_F(CliBench, PrintsATable) {
  const Ran ran = bench("--quick --full --no-torch --threads 1");
  EXPECT_EQ(ran.exit_code, 0);
  for (const char* text :
       {"1 thread;", "by memcpy", "transpose_odd/u8", "times the time of one copy of 1 MiB", "the lowest of 514", "under 0.25"})
    EXPECT_NE(ran.output.find(text), std::string::npos) << text << " in:\n" << ran.output;
}

TEST_F(CliBench, UsesAsManyThreadsAsItIsTold) {
  EXPECT_EQ(Json::parse(bench("--quick --json --no-torch --threads 3").output)[0]["threads"], 3);
  EXPECT_EQ(Json::parse(bench("--quick --json --no-torch", "BERTH_THREADS=2").output)[0]["threads"], 2);
  EXPECT_EQ(bench("--quick --no-torch", "BERTH_THREADS=many").exit_code, 2);
}

TEST_F(CliBench, MeasuresOnlyWhatIsChosen) {
  const Json some = Json::parse(bench("--quick --json --no-torch --only transpose/,small").output);
  ASSERT_EQ(some.size(), 3U);
  EXPECT_EQ(some[1]["name"], "transpose/u8");
  EXPECT_EQ(some[2]["name"], "small/64B");
  EXPECT_EQ(Json::parse(bench("--quick --json --full --only full/reversed/bool --only nhwc/C3/").output).size(), 11U + 5U);
  EXPECT_EQ(bench("--quick --full --only full/reversed/bool").exit_code, 0);
  const Ran none = bench("--quick --no-torch --only full/reversed/bool");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.output.find("--full has more"), std::string::npos) << none.output;
}

TEST_F(CliBench, WrongUseExitsWithTwo) {
  for (const char* wrong : {"--threads 0", "--threads 257", "--threads", "--fast", "extra", "--torch-timeout 0", "--json=maybe"})
    EXPECT_EQ(bench(wrong).exit_code, 2) << wrong;
  EXPECT_EQ(run_command(BERTH_CLI " bench").exit_code, 2);
  EXPECT_EQ(run_command(BERTH_CLI " bench frobnicate").exit_code, 2);
}

TEST_F(CliBench, WhatIsNoPyTorchIsSaidAndLeftOut) {
  expect_no_comparison("echo 'none no such module'", "no such module");
  expect_no_comparison("exit 0", "has ended");
  expect_no_comparison("echo 'Segmentation fault'", "'Segmentation fault'");
  expect_no_comparison("while :; do printf xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", "without an end");
  expect_no_comparison("printf '\\033[31mred\\n'", "\\x1b[31mred");
  const Ran ran = bench("--quick", "BERTH_PYTHON=/nowhere/at/all");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_NE(ran.output.find("/nowhere/at/all: the program cannot be started (No such file or directory)"), std::string::npos) << ran.output;
}

TEST_F(CliBench, APeerThatDiesOrTalksNonsenseInTheMiddleIsLeftOut) {
  expect_no_comparison("echo ready 1; read -r line", "has ended");
  expect_no_comparison("echo ready 1; while read -r line; do echo maybe; done", "'maybe'");
  expect_no_comparison("echo ready 1; read -r line; echo ok; read -r line; echo seconds 0.5; read -r line", "has ended");
  for (const char* nonsense :
       {"seconds", "seconds soon", "seconds -1", "seconds 0", "seconds nan", "seconds inf", "seconds 1 2", "1.5", "ok"})
    expect_no_comparison(std::string("echo ready 1; read -r line; echo ok; while read -r line; do echo ") + nonsense + "; done", nonsense);
}

TEST_F(CliBench, APeerThatHangsIsKilled) {
  expect_no_comparison("echo $$ >" + (folder_ / "process").string() + "; sleep 1000", "does not answer", "0.5");
  expect_no_comparison("echo ready 1; read -r line; echo ok; sleep 1000", "does not answer", "0.5");
  int process = 0;
  std::ifstream(folder_ / "process") >> process;
  ASSERT_GT(process, 1);
  EXPECT_EQ(kill(process, 0), -1) << "it is reaped";
}

TEST_F(CliBench, APeersTimesAreCompared) {
  std::string said;
  // This peer cannot do transposes.
  const Json results = beside(
      "echo ready 1; while read -r word kind layout rest; do case \"$word $layout\" in 'prepare transposed') echo cannot do that;; "
      "prepare*) echo ok;; *) echo seconds 2.0;; esac; done",
      said);
  EXPECT_EQ(said, "");
  for (const Json& one : results) {
    const std::string name = one["name"];
    if (name.starts_with("transpose")) {
      EXPECT_TRUE(one["torch_ratio"].is_null()) << one;
      continue;
    }
    EXPECT_EQ(one["torch_seconds"], 2) << one;
    EXPECT_NEAR(one["torch_ratio"].get<double>() * one["seconds"].get<double>(), 2, 1e-9) << one;
  }
}

// The peer records its requests.
TEST_F(CliBench, APeerIsAskedForTheSame) {
  std::string said;
  beside("echo \"$4 $THP_MEM_ALLOC_ENABLE\" >" + (folder_ / "asked").string() + "; echo ready 1; while read -r line; do echo $line >>" +
             (folder_ / "asked").string() + "; case $line in prepare*) echo ok;; *) echo seconds 1;; esac; done",
         said);
  std::stringstream asked;
  asked << std::ifstream(folder_ / "asked").rdbuf();
  for (const char* line : {" 1\n", "prepare copy contiguous f32 f32 262144 1\n", "prepare copy transposed f32 bf16 256,256 1\n",
                           "prepare copy nhwc f32 f32 2,64,16,16 1\n", "prepare batch contiguous f32 f32 64,4096 1\n",
                           "prepare small contiguous f32 f32 16 1000\n", "round 1 0.3\n"})
    EXPECT_NE(asked.str().find(line), std::string::npos) << line << " in:\n" << asked.str();
}

TEST_F(CliBench, EveryCaseIsComparedWherePyTorchIsInstalled) {
  if (run_command("${BERTH_PYTHON:-python3} -c 'import torch'").exit_code != 0)
    GTEST_SKIP() << "no PyTorch here: pip install torch, or set BERTH_PYTHON";
  const Ran ran = bench("--quick --json");
  ASSERT_EQ(ran.exit_code, 0);
  for (const Json& one : Json::parse(ran.output)) EXPECT_TRUE(one["torch_ratio"].is_number() && one["torch_ratio"] > 0) << one;
}

// ---- What is measured.

TEST(BenchCases, AreAsLargeAsTheirNamesSay) {
  std::map<std::string, Shape> shapes;
  for (const cli::BenchCase& one : cli::bench_cases(false)) shapes.emplace(one.name, one.shape);
  EXPECT_EQ(shapes["copy/f32"].size_bytes(DType::f32), std::size_t{1} << 30);
  EXPECT_EQ(shapes["convert/f32-i8"].size_bytes(DType::f32), std::size_t{256} << 20);
  EXPECT_EQ(shapes["convert/i8-f32"].size_bytes(DType::f32), std::size_t{256} << 20);
  EXPECT_EQ(shapes["transpose/u8"], (Shape{8192, 8192}));
  EXPECT_EQ(shapes["transpose_odd/f32"], (Shape{8191, 8193}));
  EXPECT_EQ(shapes["nhwc/f32"], (Shape{32, 64, 128, 128}));
  EXPECT_EQ(shapes["batch/16KiB"], (Shape{4096, 4096}));
  EXPECT_EQ(shapes["small/64B"].size_bytes(DType::f32), 64U);
  for (const cli::BenchCase& one : cli::full_bench_cases(false)) {
    const std::size_t gaps = one.layout == cli::BenchLayout::inner_stride ? 2 : 1;
    const std::size_t larger = one.shape.size_bytes(size_bytes(one.from) > size_bytes(one.to) ? one.from : one.to) / gaps;
    EXPECT_LE(larger, std::size_t{64} << 20) << one.name;
    EXPECT_GT(larger, std::size_t{60} << 20) << one.name << " is to be larger than caches";
  }
}

TEST(BenchSides, ACopyThatIsPartlyWrongIsFoundInEveryLayout) {
  for (const cli::BenchCase& one : cli::full_bench_cases(true)) {
    const cli::BenchSides sides = cli::make_sides(one);
    ASSERT_TRUE(cli::first_wrong(sides).has_value()) << one.name << ": nothing is copied yet";
    cli::copy_sides(one, sides);
    ASSERT_EQ(cli::first_wrong(sides), std::nullopt) << one.name;
    const std::size_t bytes = sides.targets[0].size_bytes();
    std::memset(static_cast<unsigned char*>(sides.targets[0].data_ptr()) + bytes / 3, 0x5a, bytes / 8);
    ASSERT_TRUE(cli::first_wrong(sides).has_value()) << one.name;
  }
}

TEST(BenchSides, ASingleWrongElementIsFoundAtEitherEnd) {
  constexpr std::size_t kCount = 1 << 24;
  const cli::BenchCase large{.name = "large", .from = DType::u8, .to = DType::u8, .shape = {kCount}};
  const cli::BenchSides sides = cli::make_sides(large);
  cli::copy_sides(large, sides);
  auto* const bytes = static_cast<unsigned char*>(sides.targets[0].data_ptr());
  for (const std::size_t at : {std::size_t{0}, std::size_t{500}, kCount - 500, kCount - 1}) {
    bytes[at] ^= 1;
    EXPECT_EQ(cli::first_wrong(sides), "element " + std::to_string(at) + " of copy 0 is wrong");
    bytes[at] ^= 1;
  }
}

TEST(BenchSides, EveryPieceOfABatchIsLookedAt) {
  const std::vector<cli::BenchCase> cases = cli::bench_cases(true);
  const auto batch = std::find_if(cases.begin(), cases.end(), [](const auto& one) { return one.kind == cli::BenchKind::batch; });
  ASSERT_NE(batch, cases.end());
  const cli::BenchSides sides = cli::make_sides(*batch);
  EXPECT_EQ(sides.bytes(), 2U * 64 * 16384);
  cli::copy_sides(*batch, sides);
  EXPECT_EQ(cli::first_wrong(sides), std::nullopt);
  sides.targets[63].copy_from(sides.sources[62]);
  EXPECT_TRUE(cli::first_wrong(sides).has_value());
}

}  // namespace
}  // namespace berth::testing

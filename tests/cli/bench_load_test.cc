// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/process.h"

// `berth bench load`: that every mode is measured and described; never how long it takes.
namespace berth::testing {
namespace {

using Json = nlohmann::json;

Ran bench(const std::string& arguments) { return run_command(BERTH_CLI " bench load --quick " + arguments); }

TEST(CliBenchLoad, MeasuresEveryWayIntoFreshAndReusedMemory) {
  const Ran ran = bench("--json --threads 2");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const Json report = Json::parse(ran.output);
  ASSERT_EQ(report["figures"].size(), 6U);
  EXPECT_GT(report["bytes"], 1 << 20);
  for (std::size_t i = 0; i < 6; ++i) {
    const Json& one = report["figures"][i];
    EXPECT_EQ(one["name"], i % 3 == 0 ? "one thread of read" : i % 3 == 1 ? "load" : "load, as bf16") << one;
    EXPECT_EQ(one["fresh_memory"], i < 3) << one;
    EXPECT_GT(one["seconds"], 0) << one;
    EXPECT_GT(one["by_read"], 0) << one;
    if (i % 3 == 0) continue;
    EXPECT_EQ(one["load"]["mode"], "read") << one;
    EXPECT_EQ(one["load"]["file_bytes"], report["bytes"]) << one;
    EXPECT_EQ(one["load"]["target_bytes"].get<std::uint64_t>() * (i % 3), report["bytes"].get<std::uint64_t>()) << one;
  }
}

TEST(CliBenchLoad, SaysWhatHelpsWithoutAFolderForTemporaryFiles) {
  const Ran ran = run_command("TMPDIR=/nonexistent " BERTH_CLI " bench load --quick");
  EXPECT_EQ(ran.exit_code, 2) << ran.output;
  EXPECT_NE(ran.output.find("set TMPDIR to a folder that exists"), std::string::npos) << ran.output;
}

TEST(CliBenchLoad, MeasuresADeviceToo) {
  const Ran ran = bench("--json --device sim:0 --dtype f16");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const Json report = Json::parse(ran.output);
  ASSERT_EQ(report["figures"].size(), 4U);
  for (const Json& one : report["figures"]) {
    EXPECT_TRUE(one["by_read"].is_null()) << one;
    EXPECT_EQ(one["load"]["device"], "sim:0") << one;
    EXPECT_GT(one["load"]["staging_bytes"], 0) << one;
  }
  EXPECT_NE(bench("--device sim:0").output.find("onto sim:0"), std::string::npos);
}

TEST(CliBenchLoad, ReadsFromTheDiskWhenAsked) {
  const Ran ran = bench("--json --cold --mode direct");
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  for (const Json& one : Json::parse(ran.output)["figures"]) {
    if (!one["load"].is_null()) {
      EXPECT_EQ(one["load"]["asked_mode"], "direct") << one;
    }
  }
}

TEST(CliBenchLoad, RefusesWhatMakesNoSense) {
  for (const char* wrong : {"--mode fast", "--dtype i8", "--dtype nothing", "--rounds 0", "--device nowhere:0"})
    EXPECT_EQ(bench(wrong).exit_code, 2) << wrong;
  EXPECT_EQ(run_command(BERTH_CLI " bench load --size huge").exit_code, 2);
  EXPECT_EQ(run_command("TMPDIR=/no/such/folder " BERTH_CLI " bench load --mode fast").output.find("folder"), std::string::npos)
      << "no file is made for it";
  EXPECT_EQ(bench("/no/such/file").exit_code, 2);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "berth/version.h"
#include "cli/table.h"
#include "support/process.h"

namespace berth::testing {

using namespace internal;
namespace {

Ran berth_command(const std::string& arguments, const std::string& environment = "") {
  return run_command(environment + " " BERTH_CLI " " + arguments);
}

TEST(Cli, PrintsItsVersion) {
  const Ran ran = berth_command("--version");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.output, std::string("berth ") + version() + "\n");
}

TEST(Cli, ListsDevicesAsATable) {
  const Ran ran = berth_command("devices");
  EXPECT_EQ(ran.exit_code, 0);
  for (const char* expected : {"cpu:0", "pinned:0", "sim:0", "allocator", "64 KiB"})
    EXPECT_NE(ran.output.find(expected), std::string::npos) << ran.output;
  EXPECT_EQ(ran.output.find('\x1b'), std::string::npos) << "no colour when not on a terminal";
}

TEST(Cli, ListsDevicesAsJson) {
  const Ran ran = berth_command("devices --json");
  EXPECT_EQ(ran.exit_code, 0);
  const nlohmann::json json = nlohmann::json::parse(ran.output);
  EXPECT_EQ(json["devices"][0]["device"], "cpu:0");
  EXPECT_EQ(json["devices"][0]["abilities"]["host_access"], true);
  EXPECT_GT(json["devices"][0]["total_bytes"], 0);
  EXPECT_TRUE(json["unavailable"].is_array());
}

TEST(Cli, DoctorSaysWhatIsThereAndHowToFixWhatIsNot) {
  const Ran text = berth_command("doctor");
  EXPECT_EQ(text.exit_code, 0) << text.output;
  EXPECT_NE(text.output.find("berth works here"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(berth_command("doctor --json").output);
  EXPECT_EQ(json["works"], true);
  for (const auto& finding : json["findings"]) {
    const std::string verdict = finding["verdict"];
    EXPECT_TRUE(verdict == "good" || !finding["help"].get<std::string>().empty()) << finding;
  }
}

TEST(Cli, DoctorAnswersNoWhenADeviceCannotBeUsed) {
  const Ran ran = berth_command("doctor", "BERTH_CPU_ALLOCATOR=magic BERTH_SIM_PAGE=3");
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_NE(ran.output.find("BERTH_CPU_ALLOCATOR=magic"), std::string::npos) << ran.output;
  const Ran json = berth_command("doctor --json", "BERTH_CPU_NODE=99");
  EXPECT_EQ(nlohmann::json::parse(json.output)["works"], false);
}

TEST(Cli, TheTourComesOutRight) {
  const Ran ran = berth_command("tour");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(ran.output.find("✘"), std::string::npos) << ran.output;
  for (const char* expected : {"nothing leaked", "would be enough", "weights", "sim:0", "through malloc", "✔ the pool held",
                               "✔ the default allocators of cpu:0, pinned:0, sim:0, ", "shared:0 hold what they held at the start"})
    EXPECT_NE(ran.output.find(expected), std::string::npos) << ran.output;
}

TEST(Cli, WrongUseExitsWithTwoAndHelps) {
  for (const char* wrong : {"", "frobnicate", "devices --yaml", "--color purple devices", "tour extra", "devices --json=maybe"}) {
    const Ran ran = berth_command(wrong);
    EXPECT_EQ(ran.exit_code, 2) << wrong << ": " << ran.output;
    EXPECT_EQ(ran.output.find("error: "), 0U) << ran.output;
    EXPECT_NE(ran.output.find("help:"), std::string::npos) << ran.output;
  }
}

TEST(Cli, AWordThatIsNoCommandIsNamed) {
  for (const char* wrong : {"frobnicate", "shm frobnicate", "frobnicate --json"}) {
    const Ran ran = berth_command(wrong);
    EXPECT_EQ(ran.exit_code, 2) << wrong;
    EXPECT_NE(ran.output.find("there is no command 'frobnicate'"), std::string::npos) << ran.output;
  }
  EXPECT_NE(berth_command("shm").output.find("A subcommand is required"), std::string::npos);
}

TEST(Cli, EscapesInArgumentsDoNotReachTheTerminal) {
  const Ran ran = berth_command("$(printf '\\033[31mred\\377')");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.output.find('\x1b'), std::string::npos);
}

TEST(Cli, ABadEnvironmentVariableIsWrongUse) {
  const Ran allocator = berth_command("devices", "BERTH_CPU_ALLOCATOR=magic");
  EXPECT_EQ(allocator.exit_code, 2) << allocator.output;
  EXPECT_NE(allocator.output.find("arena, direct"), std::string::npos) << allocator.output;
  for (const char* wrong : {"BERTH_SIM_PAGE=13", "BERTH_SIM_PAGE=2048", "BERTH_SIM_PAGE=many", "BERTH_SIM_PAGE=2GiB",
                            "BERTH_SIM_CAPACITY=4096", "BERTH_SIM_CAPACITY=-1"}) {
    const Ran ran = berth_command("devices", wrong);
    EXPECT_EQ(ran.exit_code, 2) << ran.output;
    const std::string variable(wrong, std::strchr(wrong, '='));
    EXPECT_NE(ran.output.find(variable + "="), std::string::npos) << wrong << ": " << ran.output;
  }
  EXPECT_EQ(berth_command("devices", "BERTH_SIM_PAGE=2MiB BERTH_SIM_CAPACITY=64MiB").exit_code, 0);
}

TEST(Cli, AReaderThatGoesAwayIsNoError) {
  const Ran ran = run_command("bash -c '( sleep 0.2; " BERTH_CLI " devices ) | true; exit ${PIPESTATUS[0]}'");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(ran.output, "");
}

TEST(Cli, AClosedStandardErrorIsNoCrash) { EXPECT_EQ(berth_command("bogus 2>&-").exit_code, 2); }

TEST(Cli, AFullDiskIsSaid) {
  const Ran ran = run_command(BERTH_CLI " devices --json > /dev/full");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.output.find("No space left"), std::string::npos) << ran.output;
}

TEST(Cli, ColourIsThereWhenAskedFor) {
  EXPECT_NE(berth_command("--color always devices").output.find("\x1b["), std::string::npos);
  EXPECT_EQ(berth_command("--color never devices").output.find("\x1b["), std::string::npos);
}

TEST(Table, AlignsTextByWhatIsSeen) {
  EXPECT_EQ(cli::display_width("\x1b[31mabc\x1b[0m"), 3U);
  EXPECT_EQ(cli::display_width("✔ é"), 3U);
  cli::Table table({{"name"}, {"bytes", cli::Table::Align::right}});
  table.add({"é", "1"});
  table.add({"long name", "1000"});
  EXPECT_EQ(table.to_string(), "  name       bytes\n  é              1\n  long name   1000\n");
}

}  // namespace
}  // namespace berth::testing

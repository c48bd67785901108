// SPDX-License-Identifier: Apache-2.0
// Files that the command line reads and writes, whatever becomes of them meanwhile.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "support/process.h"
#include "support/scale.h"

namespace berth::testing {
namespace {

class CliInput : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }
  std::string content(const char* name) const {
    std::stringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  void write_lives(const char* name, int rows) const {
    std::ofstream out(path(name));
    out << "id,lower,upper,size\n";
    for (int i = 0; i < rows; ++i) out << i << ',' << i << ',' << i + 2 << ",64\n";
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("berth_input_" + std::to_string(getpid()));
};

TEST_F(CliInput, AnInputThatIsCutMeanwhileIsNoSignal) {
  const int rounds = static_cast<int>(scaled(24, 4));
  for (int round = 0; round < rounds; ++round) {
    write_lives("cut.csv", 200'000);
    std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2 + 2 * (round % 12)));
      std::filesystem::resize_file(path("cut.csv"), 4097);
    });
    const Ran ran = run_command("timeout 60 " BERTH_CLI " verify " + path("cut.csv"));  // which reads it, and wants a plan
    EXPECT_TRUE(ran.exit_code == 1 || ran.exit_code == 2) << ran.exit_code << ": " << ran.output;
    EXPECT_NE(ran.output.find("cut.csv"), std::string::npos) << ran.output;
  }
}

// The limit of `ulimit -f` stands for a full disk.
TEST_F(CliInput, AnOutputThatDoesNotFitLeavesTheOldOne) {
  write_lives("lives.csv", 200);
  for (const char* const option : {"--out", "--html", "--svg"}) {
    std::ofstream(path("old")) << "precious";
    const std::string command = std::string(BERTH_CLI " plan ") + path("lives.csv") + ' ' + option + ' ' + path("old");
    const Ran full = run_command("ulimit -f 1; " + command);
    EXPECT_EQ(full.exit_code, 2) << option << ": " << full.output;
    EXPECT_NE(full.output.find("error: writing '" + path("old")), std::string::npos) << full.output;
    EXPECT_EQ(content("old"), "precious") << option;
    EXPECT_EQ(run_command(command).exit_code, 0);
    EXPECT_GT(content("old").size(), 512U) << option;
  }
}

}  // namespace
}  // namespace berth::testing

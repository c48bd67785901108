// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/everything.h"
#include "support/process.h"

namespace berth::testing {
namespace {

class CliShm : public ::testing::Test {
 protected:
  CliShm() {
    folder_ = "/dev/shm/berth-cli-" + std::to_string(getpid());
    setenv("BERTH_SHM_DIR", folder_.c_str(), 1);
  }
  ~CliShm() override {
    std::filesystem::remove_all(folder_);
    unsetenv("BERTH_SHM_DIR");
  }
  static Ran command(const std::string& arguments) { return run_command(std::string(BERTH_CLI " ") + arguments); }
  static nlohmann::json json(const std::string& arguments) { return nlohmann::json::parse(command(arguments).output); }

  std::string folder_;
};

TEST_F(CliShm, ListsNamesWithTheirHolders) {
  EXPECT_NE(command("shm ls").output.find("no named shared storages"), std::string::npos);
  const Storage w = create_shared("weights", {4, 256}, DType::f32);
  const Ran table = command("shm ls");
  EXPECT_EQ(table.exit_code, 0);
  for (const std::string& expected : {std::string("weights"), std::string("4 KiB"), std::string("f32 [4, 256]"), std::to_string(getpid())})
    EXPECT_NE(table.output.find(expected), std::string::npos) << table.output;
  const nlohmann::json all = json("shm ls --json");
  ASSERT_EQ(all["storages"].size(), 1U);
  EXPECT_EQ(all["storages"][0]["name"], "weights");
  EXPECT_EQ(all["storages"][0]["size_bytes"], 4096);
  EXPECT_EQ(all["storages"][0]["dead"], false);
  EXPECT_EQ(all["storages"][0]["holders"][0]["process"], getpid());
  EXPECT_EQ(all["storages"][0]["holders"][0]["alive"], true);
  EXPECT_EQ(command("shm").exit_code, 2);
  EXPECT_EQ(command("--help").output.find("tour-guest"), std::string::npos) << "what is not for people is not shown";
}

TEST_F(CliShm, CollectsTheDeadAndLeavesTheLivingAlone) {
  const Storage alive = create_shared("alive", {16}, DType::u8);
  (void)run_command(BERTH_SHARE_HELPER " leave-named plain dead");
  EXPECT_NE(command("shm ls").output.find("(dead)"), std::string::npos);
  const nlohmann::json removed = json("shm gc --json");
  ASSERT_EQ(removed["removed"].size(), 1U);
  EXPECT_EQ(removed["removed"][0]["name"], "dead");
  EXPECT_NE(command("shm gc").output.find("nothing to reap"), std::string::npos);
  EXPECT_EQ(json("shm ls --json")["storages"][0]["name"], "alive");
  EXPECT_EQ(open_shared("alive").num_elements(), 16U);
}

}  // namespace
}  // namespace berth::testing

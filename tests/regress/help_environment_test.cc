// SPDX-License-Identifier: Apache-2.0
// What the refusal of an environment variable says would help is done here, on the command line.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "file/file_support.h"
#include "support/everything.h"
#include "support/process.h"

namespace berth::testing {
namespace {

struct EnvironmentRow {
  std::string help;
  std::string wrong;
  std::string right;
  std::string command = "doctor";
};

Ran berth_with(const std::string& environment, const std::string& command) {
  return run_command("env " + environment + " timeout 120 " BERTH_CLI " " + command);
}

void follow(const std::vector<EnvironmentRow>& rows) {
  for (const EnvironmentRow& row : rows) {
    const Ran refused = berth_with(row.wrong, row.command);
    EXPECT_NE(refused.output.find(row.help), std::string::npos) << row.wrong << ": " << refused.output;
    const Ran well = berth_with(row.right, row.command);
    EXPECT_EQ(well.exit_code, 0) << row.right << ": " << well.output;
    EXPECT_EQ(well.output.find(row.help), std::string::npos) << row.right << ": " << well.output;
    EXPECT_EQ(well.output.find("berth: "), std::string::npos) << row.right << ": " << well.output;
  }
}

TEST(HelpOfTheEnvironment, OfAllocators) {
  const std::string pool_help = "write its limit, as in pool:8GiB, or options, as in pool:limit=8GiB,decay=5s";
  const std::string check_help =
      "its options are canary, quarantine, blocks, guard, as in BERTH_CHECK=1, or abort,zero,streams,guard=16; 0 is off";
  follow({
      {pool_help, "BERTH_CPU_ALLOCATOR=pool:much", "BERTH_CPU_ALLOCATOR=pool:8GiB"},
      {pool_help, "BERTH_CPU_ALLOCATOR=pool:much", "BERTH_CPU_ALLOCATOR=pool:limit=8GiB,decay=5s"},
      {"write the most memory that the process may take, as in BERTH_LIMIT=8GiB", "BERTH_LIMIT=much", "BERTH_LIMIT=8GiB"},
      {"write the most memory that the process may take, as in BERTH_SIM_LIMIT=8GiB", "BERTH_SIM_LIMIT=0", "BERTH_SIM_LIMIT=8GiB"},
      {check_help, "BERTH_CHECK=much", "BERTH_CHECK=1"},
      {check_help, "BERTH_CHECK=guard=much", "BERTH_CHECK=abort,zero,streams,guard=16"},
      {check_help, "BERTH_CHECK=guard=much", "BERTH_CHECK=0"},
  });
  follow({
      {"use rounded, which is the same here", "BERTH_CPU_ALLOCATOR=Round", "BERTH_CPU_ALLOCATOR=rounded"},
      {"use exact, which is the same here", "BERTH_CPU_ALLOCATOR=naive", "BERTH_CPU_ALLOCATOR=exact"},
      {"use direct, which is the same here", "BERTH_CPU_ALLOCATOR=Unpooled", "BERTH_CPU_ALLOCATOR=direct"},
      {"set BERTH_CPU_ALLOCATOR to rounded (Round there), exact (Naive), direct (Unpooled), or pool",
       "BERTH_CPU_ALLOCATOR=MXNET_CPU_MEM_POOL_TYPE", "BERTH_CPU_ALLOCATOR=pool"},
      {"set BERTH_PINNED_ALLOCATOR=rounded", "BERTH_CPU_ALLOCATOR=MXNET_CPU_PINNED_MEM_POOL_TYPE=Round", "BERTH_PINNED_ALLOCATOR=rounded"},
      {"set BERTH_CUDA_ALLOCATOR=rounded:cutoff=16MiB", "BERTH_CPU_ALLOCATOR=MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF=24",
       "BERTH_CPU_ALLOCATOR=rounded:cutoff=16MiB"},
  });
  const Ran refused = berth_with("BERTH_CPU_ALLOCATOR=heap", "doctor");
  EXPECT_NE(refused.output.find("use one of "), std::string::npos) << refused.output;
  for (const std::string& name : allocator_names()) {
    EXPECT_NE(refused.output.find(name), std::string::npos) << refused.output;
    EXPECT_EQ(berth_with("BERTH_CPU_ALLOCATOR=" + name, "doctor").exit_code, 0) << name;
  }
}

TEST(HelpOfTheEnvironment, OfDevices) {
  const std::string sim_help = "write a number, or 64KiB, 2GiB";
  follow({
      {"use 1 to ask for huge pages, 0 not to", "BERTH_CPU_HUGE_PAGES=yes", "BERTH_CPU_HUGE_PAGES=1"},
      {"use 1 to ask for huge pages, 0 not to", "BERTH_CPU_HUGE_PAGES=yes", "BERTH_CPU_HUGE_PAGES=0"},
      {"write how many mappings the process may have, such as 16000", "BERTH_CPU_MAPPINGS=many", "BERTH_CPU_MAPPINGS=16000"},
      {sim_help, "BERTH_SIM_CAPACITY=much", "BERTH_SIM_CAPACITY=2GiB"},
      {sim_help, "BERTH_SIM_PAGE=much", "BERTH_SIM_PAGE=64KiB"},
      {sim_help, "BERTH_SIM_PAGE=much", "BERTH_SIM_PAGE=65536"},
      {"change BERTH_SIM_PAGE", "BERTH_SIM_PAGE=3", "BERTH_SIM_PAGE=4096"},
      {"change BERTH_SIM_CAPACITY", "BERTH_SIM_CAPACITY=100", "BERTH_SIM_CAPACITY=1GiB"},
  });
  const Ran refused = berth_with("BERTH_CPU_NODE=9999", "doctor");
  const std::string help = "the NUMA nodes with memory here are ";
  const std::size_t at = refused.output.find(help);
  ASSERT_NE(at, std::string::npos) << refused.output;
  const std::string node =
      refused.output.substr(at + help.size(), refused.output.find_first_of(", \n", at + help.size()) - at - help.size());
  EXPECT_EQ(berth_with("BERTH_CPU_NODE=" + node, "doctor").exit_code, 0) << node;
}

TEST(HelpOfTheEnvironment, OfObservers) {
  const Folder folder;
  const std::string trace = "BERTH_TRACE=" + folder / "a.trace";
  const std::string live = "/dev/shm/berth-help-live-" + std::to_string(getpid());
  follow({
      {"name a file that can be created", "BERTH_TRACE=/nowhere/at/all", trace},
      {"write one, such as 256MiB", trace + " BERTH_TRACE_LIMIT=much", trace + " BERTH_TRACE_LIMIT=256MiB"},
      {"use 128 KiB or more", trace + " BERTH_TRACE_LIMIT=1000", trace + " BERTH_TRACE_LIMIT='128 KiB'"},
      {"is not a number from 0 to 12", "BERTH_PROFILE=" + folder / "p BERTH_STACK_DEPTH=99",
       "BERTH_PROFILE=" + folder / "p BERTH_STACK_DEPTH=12"},
      {"name a file that can be created", "BERTH_PROFILE=/nowhere/at/all", "BERTH_PROFILE=" + folder / "profile"},
      {"use USR1 or USR2", "BERTH_SNAPSHOT_SIGNAL=KILL", "BERTH_SNAPSHOT_SIGNAL=USR1"},
      {"use USR1 or USR2", "BERTH_SNAPSHOT_SIGNAL=magic", "BERTH_SNAPSHOT_SIGNAL=USR2"},
      {"set BERTH_LIVE_DIR to a folder of your own on a file system like tmpfs", "BERTH_LIVE=1 BERTH_LIVE_DIR=/nowhere/at/all",
       "BERTH_LIVE=1 BERTH_LIVE_DIR=" + live},
  });
  std::filesystem::remove_all(live);
}

TEST(HelpOfTheEnvironment, OfMeasuring) {
  const Folder folder;
  const std::string copies = "bench copy --quick --only memcpy,copy";
  follow({
      {"use a number from 1 to 256", "BERTH_THREADS=many", "BERTH_THREADS=256", copies + " --no-torch"},
      {"set TMPDIR to a folder that exists, or unset it", "TMPDIR=/nowhere/at/all", "TMPDIR=" + folder.path(), "bench load --quick"},
      {"set TMPDIR to a folder that exists, or unset it", "TMPDIR=/nowhere/at/all", "-u TMPDIR", "bench load --quick"},
      {"set TMPDIR to a folder that you may write to", "TMPDIR=/proc", "TMPDIR=" + folder.path(),
       "bench load --quick"},  // root too may not
  });
  const std::string help = "pip install torch, or name a Python that has it in BERTH_PYTHON; --no-torch leaves it out";
  EXPECT_NE(berth_with("BERTH_PYTHON=/nowhere/at/all", copies).output.find(help), std::string::npos);
  EXPECT_EQ(berth_with("BERTH_PYTHON=/nowhere/at/all", copies + " --no-torch").output.find(help), std::string::npos);
}

}  // namespace
}  // namespace berth::testing

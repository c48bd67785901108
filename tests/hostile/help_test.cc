// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "file/file_support.h"
#include "support/everything.h"
#include "support/process.h"

// What the command line says would help where the system refuses a call, or has no /proc, is done here.
namespace berth::testing {
namespace {

struct SystemRow {
  std::string help;
  std::string wrong;  // what a shell runs
  std::string right;
};

std::string denied(long call, const std::string& command, int error = EPERM) {
  return "DENY_CALL=" + std::to_string(call) + ':' + std::to_string(error) + " LD_PRELOAD=" BERTH_DENY " " + command;
}

// In a mount namespace of its own. $BERTH is the command line.
std::string own_mounts(const std::string& script) { return "BERTH=" BERTH_CLI " unshare -m sh -c '" + script + "'"; }

void follow(const std::vector<SystemRow>& rows) {
  for (const SystemRow& row : rows) {
    const Ran refused = run_command(row.wrong);
    EXPECT_NE(refused.output.find(row.help), std::string::npos) << row.wrong << ": " << refused.output;
    const Ran well = run_command(row.right);
    EXPECT_EQ(well.exit_code, 0) << row.right << ": " << well.output;
    EXPECT_EQ(well.output.find(row.help), std::string::npos) << row.right << ": " << well.output;
  }
}

bool can(const std::string& command) { return run_command(command).exit_code == 0; }

const std::string kDoctor = BERTH_CLI " doctor";

class HelpOfTheSystem : public ::testing::Test {
 protected:
  static void require_filters() {
    if (const Ran filtered = run_command(denied(SYS_getrandom, kDoctor)); filtered.exit_code == 77) GTEST_SKIP() << filtered.output;
  }
  static void require_mounts() {
    if (!can("unshare -m true")) GTEST_SKIP() << "file systems can be mounted by root only";
  }
};

// The calls that are refused stand for limits and kernels that refuse them; raised, newer or of no sandbox they do not.
TEST_F(HelpOfTheSystem, OfRefusedCalls) {
  require_filters();
  if (IsSkipped()) return;
  follow({
      {"let the sandbox allow that call", denied(SYS_mprotect, kDoctor), kDoctor},
      {"raise the address-space limit: ulimit -v unlimited", denied(SYS_mmap, kDoctor, ENOMEM), "ulimit -v unlimited; " + kDoctor},
      {"free memory, or lift the overcommit limit: sysctl vm.overcommit_memory", denied(SYS_mprotect, kDoctor, ENOMEM), kDoctor},
      {"needs Linux 5.7; without it berth releases pages instead", denied(SYS_mremap, kDoctor, EINVAL), kDoctor},
  });
  const Ran without = run_command(denied(SYS_mremap, kDoctor, EINVAL));
  EXPECT_EQ(without.exit_code, 0) << "it releases pages instead: " << without.output;
}

// Where there is no /dev/urandom.
TEST_F(HelpOfTheSystem, OfRandomBytes) {
  require_filters();
  require_mounts();
  if (IsSkipped()) return;
  const std::string no_device = "mount -t tmpfs none /dev && ";
  follow({{"let the sandbox allow getrandom: new files and shared storages get their names from it",
           own_mounts(no_device + denied(SYS_getrandom, "$BERTH doctor")), own_mounts(no_device + "$BERTH doctor")}});
}

TEST_F(HelpOfTheSystem, OfProc) {
  require_filters();
  require_mounts();
  if (IsSkipped()) return;
  const std::string no_proc = "mount -t tmpfs none /proc && ";
  const std::string again = "mount -t proc proc /proc && ";
  const std::string no_sysinfo = denied(SYS_sysinfo, "$BERTH doctor");
  follow({
      {"mount -t proc proc /proc", own_mounts(no_proc + "$BERTH doctor"), own_mounts(no_proc + again + "$BERTH doctor")},
      {"mount /proc, or let the sandbox allow sysinfo", own_mounts(no_proc + no_sysinfo), own_mounts(no_proc + again + no_sysinfo)},
  });
  const Ran allowed = run_command(own_mounts(no_proc + "$BERTH doctor"));
  EXPECT_EQ(allowed.output.find("let the sandbox allow sysinfo"), std::string::npos) << allowed.output;
}

// Limits on processes do not hold for root.
TEST_F(HelpOfTheSystem, OfThreads) {
  const std::string limited = "prlimit --nproc=1 ";
  const std::string user = geteuid() == 0 ? "setpriv --reuid 65534 --clear-groups " : "";
  if (!can(limited + user + BERTH_CLI " --version")) GTEST_SKIP() << "there is no prlimit or setpriv, or that user may not run the program";
  const Folder folder;
  const std::string replay = user + BERTH_CLI " replay --threads 3 " + folder.write("a.csv", "a,1,4096,0\nf,1,4096,0\n");
  const std::string live = "BERTH_LIVE=1 BERTH_LIVE_DIR=/dev/shm/berth-help-live-" + std::to_string(getpid()) + " ";
  const std::string devices =
      user + BERTH_CLI " devices; result=$?; rm -rf /dev/shm/berth-help-live-" + std::to_string(getpid()) + "; exit $result";
  const std::string help = "end threads that are not needed, or raise the limit of processes (ulimit -u) or of the control group";
  follow({
      {help, limited + replay, replay},
      {help, live + limited + devices, live + devices},
  });
}

}  // namespace
}  // namespace berth::testing

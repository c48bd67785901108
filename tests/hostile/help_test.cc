// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/sanitizers.h"
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
           own_mounts(no_device + denied(SYS_getrandom, "$BERTH doctor")), own_mounts(no_device + "$BERTH doctor")},
          {"let the sandbox allow that call, or raise the limit that refused it",
           own_mounts(no_device + denied(SYS_getrandom, "$BERTH doctor")), own_mounts(no_device + "$BERTH doctor")}});
  const std::string refused = run_command(own_mounts(no_device + denied(SYS_getrandom, "$BERTH doctor"))).output;
  EXPECT_EQ(refused.find("run both sides as the same user"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("berth doctor shows"), std::string::npos) << refused;
  const Folder folder;
  folder.write("lives.csv", "id,lower,upper,size\na,0,2,4096\n");
  save_npy(folder / "a.npy", zeros({2}, DType::f32, "cpu"));
  for (const std::string& command :
       {"plan --out " + folder / "p.json" + " " + folder / "lives.csv", "convert " + folder / "a.npy" + " " + folder / "b.npy"})
    follow({{"let the sandbox allow the call: berth doctor shows what this machine has and lacks",
             own_mounts(no_device + denied(SYS_getrandom, "$BERTH " + command)), own_mounts(no_device + "$BERTH " + command)}});
}

TEST_F(HelpOfTheSystem, OfSmallLimits) {
  const std::string limit = "raise the limit of the process (ulimit -a shows all) or of its control group, or ask for less";
  const Folder folder;
  folder.write("lives.csv", "id,lower,upper,size\na,0,2,4096\n");
  const std::string plan = BERTH_CLI " plan --out " + folder / "p.json" + " " + folder / "lives.csv";
  follow(
      {{"raise the limit (ulimit -f), or write several files", "ulimit -f 0; " + plan, plan}, {limit, "ulimit -f 0; " + kDoctor, kDoctor}});
  const std::string doctor = run_command("ulimit -f 0; " + kDoctor).output;
  EXPECT_EQ(doctor.find("use a device with more memory"), std::string::npos) << doctor;
  if (internal::kAddressSanitizer || internal::kThreadSanitizer) return;  // they need addresses of their own
  std::string trace;
  for (int i = 0; i < 500'000; ++i) trace += "a," + std::to_string(i) + ",1,0\n";
  folder.write("t.csv", trace);
  const std::string replay = BERTH_CLI " replay --once " + folder / "t.csv";
  follow({{limit, "ulimit -v 300000; " + kDoctor, kDoctor}, {limit, "ulimit -v 60000; " + replay, replay}});
  EXPECT_EQ(run_command("ulimit -v 300000; " + kDoctor).output.find("use a device with more memory"), std::string::npos);
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

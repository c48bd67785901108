// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "hostile/denied_exit.h"
#include "hostile/run_limited.h"
#include "support/everything.h"

// Services of berth where the system gives little: small limits of the process, and file systems that are full,
// read-only or missing. Every program ends by itself and in time, and says what it ran into.
namespace berth::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kServices = {"cpu", "devices", "threads", "fork", "share", "listen", "names", "files", "plan", "observe"};

// ---- what the system says is there

Ended shell(const std::string& script, const std::vector<std::string>& variables = {}) {
  return run_limited({"sh", "-c", script}, variables);
}

bool can(const std::string& command) { return shell(command + " >/dev/null 2>&1").exit_code == 0; }

std::string service(const std::string& name, const OwnFolder& folder) { return BERTH_DENIED_HELPER " " + name + ' ' + folder.path(); }

void expect_an_end(const Ended& ended, const std::string& where) {
  EXPECT_FALSE(ended.timed_out) << where << ": it hangs";
  const bool known = ended.exit_code == kDone || ended.exit_code == kRefused || ended.exit_code == kNoHeap || ended.exit_code == kOwn;
  EXPECT_TRUE(known) << where << ": it exits with " << ended.exit_code << '\n' << ended.output;
}

bool says(const Ended& ended, const std::string& words) { return ended.output.find(words) != std::string::npos; }

bool says_one_of(const Ended& ended, const std::vector<std::string>& all) {
  return std::ranges::any_of(all, [&](const std::string& words) { return says(ended, words); });
}

// ---- limits of the process

struct LimitCase {
  const char* name;
  const char* option;  // of prlimit
  std::vector<std::string> values;
  std::vector<std::string> words = {};  // an error has one of these; none is expected if there are none
};

void PrintTo(const LimitCase& one, std::ostream* out) { *out << one.name; }

class Limits : public ::testing::TestWithParam<LimitCase> {};

TEST_P(Limits, AServiceEndsAndSaysWhy) {
  if (!can("prlimit --version")) GTEST_SKIP() << "there is no prlimit";
  const LimitCase& limit = GetParam();
  // Limits on processes do not hold for root.
  const bool drop = geteuid() == 0 && std::string(limit.name) == "NPROC";
  if (drop && !can("setpriv --reuid 65534 --clear-groups true")) GTEST_SKIP() << "root has no such limit, and there is no setpriv";
  for (const std::string& name : kServices) {
    for (const std::string& value : limit.values) {
      const OwnFolder folder;
      const OwnFolder shared(fs::exists("/dev/shm") ? "/dev/shm" : "");
      for (const OwnFolder* const one : {&folder, &shared}) {
        if (drop && chown(one->path().c_str(), 65534, 65534) != 0) GTEST_SKIP() << "no folder can be given to another user";
      }
      const std::string user = drop ? "setpriv --reuid 65534 --clear-groups " : "";
      const Ended ended = shell("exec prlimit --" + std::string(limit.option) + '=' + value + ' ' + user + service(name, folder),
                                {"BERTH_SHM_DIR=" + shared.path() + "/names", "BERTH_LIVE_DIR=" + shared.path() + "/live"});
      if (ended.exit_code == 127 || ended.exit_code == 126 || says(ended, "error while loading")) continue;  // too little to be loaded
      expect_an_end(ended, name + " with " + limit.option + '=' + value);
      if (ended.exit_code == kRefused) {
        EXPECT_TRUE(says_one_of(ended, limit.words)) << ended.output;
      }
    }
  }
}
const std::string kNoThread = "Resource temporarily unavailable";
INSTANTIATE_TEST_SUITE_P(
    Small, Limits,
    ::testing::Values(LimitCase{"AS", "as", {"200000000", "500000000", "2000000000"}, {"of addresses", "ulimit -v", kNoThread}},
                      LimitCase{"DATA", "data", {"3000000", "30000000"}, {"ulimit -d", kNoThread}},
                      LimitCase{"NOFILE", "nofile", {"4", "6", "9"}, {"Too many open files", "too many open"}},
                      LimitCase{"NPROC", "nproc", {"1"}, {kNoThread}},
                      LimitCase{"FSIZE", "fsize", {"0", "5000", "200000"}, {"ulimit -f", "File too large"}},
                      LimitCase{"MEMLOCK", "memlock", {"0"}}, LimitCase{"STACK", "stack", {"65536"}},
                      LimitCase{"SIGPENDING", "sigpending", {"0"}}, LimitCase{"MSGQUEUE", "msgqueue", {"0"}}),
    [](const auto& one) { return std::string(one.param.name); });

// ---- file systems, in a mount namespace of the program's own

struct MountCase {
  const char* name;
  const char* script;  // before the program; $OUT is its folder
  const char* service;
  const char* expected;  // in what it says; empty: it works
};
void PrintTo(const MountCase& one, std::ostream* out) { *out << one.name; }

class Mounts : public ::testing::TestWithParam<MountCase> {};

TEST_P(Mounts, AServiceEndsAndSaysWhy) {
  if (!can("unshare -m true")) GTEST_SKIP() << "file systems can be mounted by root only";
  const MountCase& given = GetParam();
  const OwnFolder folder;
  const Ended ended = shell("exec unshare -m sh -c '" + std::string(given.script) + " && exec " + service(given.service, folder) + "'",
                            {"OUT=" + folder.path()});
  expect_an_end(ended, given.name);
  EXPECT_EQ(ended.exit_code, *given.expected == '\0' ? kDone : kRefused) << ended.output;
  EXPECT_TRUE(says(ended, given.expected)) << ended.output;
}

constexpr const char* kNoProc = "mount -t tmpfs none /proc";
constexpr const char* kFullShm = "mount -t tmpfs -o size=64k none /dev/shm && head -c 60k /dev/zero > /dev/shm/full";
constexpr const char* kReadOnlyShm = "mount -t tmpfs -o ro none /dev/shm";
constexpr const char* kNoShm = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9";
constexpr const char* kFullFolder = "mount -t tmpfs -o size=64k none $OUT";
constexpr const char* kReadOnlyFolder = "mount -t tmpfs -o ro none $OUT";

INSTANTIATE_TEST_SUITE_P(
    Cases, Mounts,
    ::testing::Values(MountCase{"CpuWithoutProc", kNoProc, "cpu", ""}, MountCase{"DevicesWithoutProc", kNoProc, "devices", ""},
                      MountCase{"ThreadsWithoutProc", kNoProc, "threads", ""}, MountCase{"ForkWithoutProc", kNoProc, "fork", ""},
                      MountCase{"PlanWithoutProc", kNoProc, "plan", ""}, MountCase{"FilesWithoutProc", kNoProc, "files", ""},
                      MountCase{"SharingWithoutProc", kNoProc, "share", "/proc, which is not mounted"},
                      MountCase{"NamesWithoutProc", kNoProc, "names", "/proc, which is not mounted"},
                      MountCase{"NamesWithFullShm", kFullShm, "names", "No space left on device"},
                      MountCase{"NamesWithReadOnlyShm", kReadOnlyShm, "names", "Read-only file system"},
                      MountCase{"NamesWithoutShm", kNoShm, "names", "no folder to put named storages in"},
                      MountCase{"ListeningWithoutProc", kNoProc, "listen", "/proc is not mounted"},
                      MountCase{"ListeningWithoutShm", kNoShm, "listen", "no folder to put named storages in"},
                      MountCase{"SharingWithoutShm", kNoShm, "share", ""},
                      MountCase{"FilesInAFullFolder", kFullFolder, "files", "and the disk has"},
                      MountCase{"FilesInAReadOnlyFolder", kReadOnlyFolder, "files", "Read-only file system"},
                      MountCase{"TraceInAReadOnlyFolder", kReadOnlyFolder, "observe", "Read-only file system"}),
    [](const auto& one) { return std::string(one.param.name); });

// The addresses of a pool are as many as its device's memory calls for; it was 256 MiB where that is hidden.
TEST(HiddenMemory, LimitsNoPool) {
  if (!can("unshare -m true")) GTEST_SKIP() << "file systems can be mounted by root only";
  const Ended ended =
      shell("exec unshare -m sh -c 'mount -t tmpfs none /proc && LD_PRELOAD=" BERTH_DENY " DENY_CALL=" + std::to_string(SYS_sysinfo) +
            ":1 exec " BERTH_DENIED_HELPER " large /'");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

#ifdef BERTH_CLI
TEST(Doctor, FindsThatProcIsNotThere) {
  if (!can("unshare -m true")) GTEST_SKIP() << "file systems can be mounted by root only";
  const Ended ended = shell("exec unshare -m sh -c 'mount -t tmpfs none /proc && exec " BERTH_CLI " doctor'");
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  for (const char* const words : {"not mounted", "mount -t proc proc /proc", "berth does not work here"})
    EXPECT_TRUE(says(ended, words)) << ended.output;
}

TEST(Doctor, FindsThatNothingCanBeSharedByName) {
  if (!can("unshare -m true")) GTEST_SKIP() << "file systems can be mounted by root only";
  const Ended ended = shell("exec unshare -m sh -c '" + std::string(kReadOnlyShm) + " && exec " BERTH_CLI " doctor'");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_TRUE(says(ended, "Read-only file system") && says(ended, "shared names")) << ended.output;
}
#endif

// ---- pipes that nobody reads

// Where the environment asks for a file, and a pipe is there: opened for writing it would wait for a reader.
TEST(Pipes, HoldNoProgramUp) {
  const OwnFolder folder;
  for (const char* const variable : {"BERTH_TRACE", "BERTH_PROFILE"}) {
    const std::string pipe = folder.path() + '/' + variable;
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const Ended ended = run_limited({BERTH_DENIED_HELPER, "plan", folder.path()}, {variable + ('=' + pipe)}, std::chrono::seconds(20));
    EXPECT_FALSE(ended.timed_out) << variable;
    EXPECT_EQ(ended.exit_code, 0) << variable << ": " << ended.output;
    EXPECT_TRUE(says(ended, pipe)) << "it says that there is no file: " << ended.output;
  }
}

// ---- another user's environment

// A program with rights of its own, started by another user, takes no order from that user's environment.
TEST(SetUserPrograms, ObeyNoVariable) {
  if (geteuid() != 0 || !can("setpriv --reuid 65534 --clear-groups true")) GTEST_SKIP() << "only root can make a program of another user";
  const OwnFolder folder("/tmp");
  const std::string program = folder.path() + "/program";
  fs::copy_file(BERTH_DENIED_HELPER, program);
  const std::string out = folder.path() + "/out";
  fs::create_directory(out);
  for (const std::string& path : {folder.path(), program, out}) ASSERT_EQ(chown(path.c_str(), 65533, 65533), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  const std::string start = "exec setpriv --reuid 65534 --regid 65534 --clear-groups ";
  if (const Ended who = shell(start + program + " who /"); !says(who, "65533"))
    GTEST_SKIP() << "set-user programs have no effect here: is the folder mounted nosuid? " << who.output;
  const std::vector<std::string> orders = {"BERTH_TRACE=" + out + "/trace",
                                           "BERTH_PROFILE=" + out + "/profile",
                                           "BERTH_SNAPSHOT_ON_OOM=" + out,
                                           "BERTH_LEAKS=1",
                                           "BERTH_CHECK=abort",
                                           "BERTH_CPU_ALLOCATOR=direct",
                                           "BERTH_LIMIT=4KiB",
                                           "BERTH_CPU_NODE=77"};
  const Ended ended = shell(start + program + " who /", orders);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_TRUE(says(ended, "pool on cpu:0")) << "the allocator is the usual one: " << ended.output;
  EXPECT_FALSE(says(ended, "leak")) << ended.output;
  EXPECT_TRUE(fs::is_empty(out)) << "and no file is written";
  // The same orders have an effect where the program has no rights of its own.
  const Ended own = run_limited({BERTH_DENIED_HELPER, "who", "/"}, orders);
  EXPECT_TRUE(says(own, "leak") || says(own, "BERTH_CPU_NODE")) << own.output;
  EXPECT_FALSE(fs::is_empty(out));
}

}  // namespace
}  // namespace berth::testing

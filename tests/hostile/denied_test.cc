// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "hostile/denied_exit.h"
#include "hostile/run_limited.h"
#include "support/everything.h"
#include "support/scale.h"

// Every system call that a service of berth makes is refused in turn, as sandboxes and limits do. The calls are those
// that a first run makes, so the list cannot be out of date. Whatever is refused, the program ends by itself and in
// time: it has done its work, or berth says what the system said.
namespace berth::testing {
namespace {

namespace fs = std::filesystem;

struct Refusal {
  int error;
  int times;  // 0: always
};
constexpr std::array<Refusal, 4> kRefusals = {{{EPERM, 0}, {ENOSYS, 0}, {ENOMEM, 0}, {EINTR, 3}}};

struct Known {
  long call;
  const char* reason;
};

// Calls without which nothing can go on, whoever makes them.
constexpr Known kNeeded[] = {
    {SYS_exit_group, "a process that may not end cannot end"},
    {SYS_exit, "nor can a thread"},
    {SYS_rt_sigreturn, "nor can a signal handler"},
    {SYS_futex, "glibc ends the process: 'The futex facility returned an unexpected error code'"},
    {SYS_brk, "brk answers with the old end of the heap, and never with an error: glibc takes the errno for an address"},
#if defined(SYS_rseq)
    {SYS_rseq, "glibc ends the process: 'rseq registration failed'"},
#endif
};

// Calls whose results nobody can check: no kernel refuses them, so that glibc returns what it gets, and a filter's errno
// looks like an answer. The program must end, but may be wrong about why. As a user, -EPERM and -ENOSYS are among the last
// of all numbers, which own nothing: what a file, a folder or a peer is then compared with makes it a stranger's, and berth
// refuses it. A check of our own could only guess which numbers are no users.
constexpr Known kNeverFail[] = {
    {SYS_geteuid, "the answer is taken for a user, who owns nothing"},
    {SYS_getuid, "the answer is taken for a user, who owns nothing"},
    {SYS_getpid, "the answer is taken for a process"},
};

template <std::size_t N>
bool is_among(const Known (&known)[N], long call) {
  return std::ranges::any_of(known, [&](const Known& one) { return one.call == call; });
}

// Reports cannot be read where writing is refused.
bool is_output(long call) { return call == SYS_write || call == SYS_writev; }

bool names(const std::string& output, int error) {
  const auto says = [&](const char* words) { return output.find(words) != std::string::npos; };
  // For a thread, glibc makes EAGAIN of ENOMEM.
  return says(std::strerror(error)) || (error == ENOMEM && (says("out_of_memory") || says(std::strerror(EAGAIN))));
}

// An empty string, or what is wrong with how it ended.
std::string judge_end(const Ended& ended) {
  if (ended.timed_out) return "it hangs";
  if (ended.exit_code < 0) return "a signal ended it: " + std::string(strsignal(-1 - ended.exit_code));
  return "";
}

std::string judge_service(const Ended& ended, long call, int error) {
  if (std::string wrong = judge_end(ended); !wrong.empty()) return wrong;
  switch (ended.exit_code) {
    case kDone:
    case kOwn: return "";
    case kNoHeap: return error == ENOMEM || call == SYS_mmap ? "" : "bad_alloc, though memory was not refused";
    case kRefused: break;
    default: return "it exits with " + std::to_string(ended.exit_code);
  }
  if (is_output(call) || is_among(kNeverFail, call)) return "";
  if (error != ENOMEM && ended.output.find("refused out_of_memory") != std::string::npos) return "it blames a lack of memory";
  return names(ended.output, error) ? "" : "it does not say what the system said";
}

std::string judge_command(const Ended& ended, long call, int error) {
  if (std::string wrong = judge_end(ended); !wrong.empty()) return wrong;
  if (ended.exit_code > 2) return "it exits with " + std::to_string(ended.exit_code);
  if (ended.exit_code == 0 || is_output(call) || is_among(kNeverFail, call) || error == ENOMEM) return "";
  return names(ended.output, error) ? "" : "it does not say what the system said";
}

using Judge = std::string (*)(const Ended&, long, int);

// Refuses each call of the program in turn. At small counts each is refused in one way, and all ways have their turn.
void refuse_each(const std::vector<std::string>& words, Judge judge, const OwnFolder& folder, std::vector<std::string> variables = {}) {
  const OwnFolder shared(fs::exists("/dev/shm") ? "/dev/shm" : "");  // what is left there when a removal is refused goes with it
  variables.push_back("BERTH_SHM_DIR=" + shared.path() + "/names");
  variables.push_back("BERTH_LIVE_DIR=" + shared.path() + "/live");
  const auto prepare = [&] {
    folder.clear();
    shared.clear();
  };
  prepare();
  const Recorded recorded = record_calls(words, variables);
  if (recorded.ended.exit_code == 77) GTEST_SKIP() << "no seccomp filter can be installed: " << recorded.ended.output;
  ASSERT_EQ(recorded.ended.exit_code, 0) << recorded.ended.output;
  ASSERT_GT(recorded.calls.size(), 5U);
  const std::size_t ways = scaled(kRefusals.size());
  std::size_t runs = 0;
  for (const long call : recorded.calls) {
    if (is_among(kNeeded, call)) continue;
    for (std::size_t way = 0; way < ways; ++way, ++runs) {
      const auto& [error, times] = kRefusals[ways == kRefusals.size() ? way : runs % kRefusals.size()];
      prepare();
      const std::string deny = std::to_string(call) + ':' + std::to_string(error) + (times == 0 ? "" : ':' + std::to_string(times));
      const Ended ended = run_denied(words, deny, variables);
      const std::string wrong = judge(ended, call, error);
      EXPECT_EQ(wrong, "") << "system call " << call << " refused: " << std::strerror(error) << '\n' << ended.output;
    }
  }
  did(std::to_string(recorded.calls.size()) + " system calls, " + std::to_string(runs) + " runs");
}

class Denied : public ::testing::TestWithParam<const char*> {};

TEST_P(Denied, AServiceEndsAndSaysWhy) {
  const OwnFolder folder;
  refuse_each({BERTH_DENIED_HELPER, GetParam(), folder.path()}, judge_service, folder);
}
INSTANTIATE_TEST_SUITE_P(Calls, Denied,
                         ::testing::Values("cpu", "devices", "threads", "fork", "share", "listen", "names", "files", "plan", "observe"),
                         [](const auto& one) { return std::string(one.param); });

// What the environment asks for, when the library is loaded and when the process ends.
TEST(DeniedAtLoad, AProgramEndsAndSaysWhy) {
  const OwnFolder folder;
  refuse_each({BERTH_DENIED_HELPER, "plan", folder.path()}, judge_service, folder,
              {"BERTH_TRACE=" + folder.path() + "/trace", "BERTH_PROFILE=" + folder.path() + "/profile", "BERTH_LEAKS=1", "BERTH_LIVE=1",
               "BERTH_SNAPSHOT_SIGNAL=USR2"});
}

#ifdef BERTH_CLI
class DeniedCommands : public ::testing::TestWithParam<const char*> {
 protected:
  // Files for all commands, made once.
  static void SetUpTestSuite() {
    files_ = std::make_unique<OwnFolder>();
    const Storage x = full({30, 30}, 1.5, DType::f32, "cpu");
    save_npy(files_->path() + "/x.npy", x);
    save_safetensors(files_->path() + "/x.safetensors", {{"x", x}});
    (void)save_snapshot(files_->path() + "/snapshot.json");
    start_trace(files_->path() + "/trace");
    (void)full({30, 30}, 1.5, DType::f32, "cpu");
    (void)stop_trace();
    std::ofstream(files_->path() + "/lives.csv") << "id,lower,upper,size\na,0,2,64\nb,1,3,64\nc,2,4,64\n";
  }
  static void TearDownTestSuite() { files_.reset(); }

  inline static std::unique_ptr<OwnFolder> files_;
};

TEST_P(DeniedCommands, EndsAndSaysWhy) {
  const OwnFolder folder;
  std::vector<std::string> words = {BERTH_CLI};
  std::istringstream line(GetParam());
  for (std::string word; line >> word;) {
    if (word.starts_with("IN/")) word.replace(0, 2, files_->path());
    if (word.starts_with("OUT/")) word.replace(0, 3, folder.path());
    words.push_back(word);
  }
  refuse_each(words, judge_command, folder);
}
INSTANTIATE_TEST_SUITE_P(Each, DeniedCommands,
                         ::testing::Values("devices", "doctor", "plan IN/lives.csv --out OUT/plan.json", "replay IN/trace --threads 3",
                                           "inspect IN/x.safetensors", "convert IN/x.npy OUT/y.safetensors", "shm ls",
                                           "snapshot html IN/snapshot.json --out OUT/report.html"),
                         [](const auto& one) {
                           const std::string words = one.param;
                           return words.substr(0, words.find(' '));
                         });

// What cannot be listed is no empty list.
TEST(DeniedCommand, ANamesFolderThatCannotBeReadIsSaid) {
  const OwnFolder shared(fs::exists("/dev/shm") ? "/dev/shm" : "");
  const std::vector<std::string> variables = {"BERTH_SHM_DIR=" + shared.path()};
  const Ended ended = run_denied({BERTH_CLI, "shm", "ls"}, std::to_string(SYS_getdents64) + ':' + std::to_string(EPERM), variables);
  if (ended.exit_code == 77) GTEST_SKIP() << ended.output;
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_NE(ended.output.find("Operation not permitted"), std::string::npos) << ended.output;
}
#endif

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/everything.h"

// The helper program of the tests of sharing, traced by this process: it runs up to a system call or an
// instruction, and no further.
namespace berth::testing {

class Helper {
 public:
  // With a channel, whose other end is the helper's descriptor 3.
  Helper(const std::string& scenario, const std::string& how = "", const std::string& name = "") : channel_(open(scenario, how, name)) {}
  ~Helper() {
    if (process_ > 0) kill();
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  Channel& channel() { return channel_; }
  pid_t process() const { return process_; }

  void kill() {
    ::kill(process_, SIGKILL);
    wait_for_end();
  }
  // The exit code, or -1 - signal.
  int wait_for_end() {
    int status = 0;
    while (waitpid(process_, &status, 0) == process_ && !WIFEXITED(status) && !WIFSIGNALED(status)) {
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
  }

  // ---- Traced. Runs to its next mark; false when it ends before that.
  bool run_to_mark() {
    int status = 0;
    if (!started_) {
      started_ = true;
    } else if (ptrace(PTRACE_CONT, process_, nullptr, nullptr) != 0) {
      return false;
    }
    if (waitpid(process_, &status, 0) != process_) return false;
    if (!WIFSTOPPED(status)) return ended(status);
    ptrace(PTRACE_SETOPTIONS, process_, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    return WSTOPSIG(status) == SIGSTOP;
  }

  enum class Stop { call, step, mark, end };
  // Runs to the entry or exit of the next system call.
  Stop next_call() { return resume(PTRACE_SYSCALL); }
  // Runs one instruction.
  Stop next_step() { return resume(PTRACE_SINGLESTEP); }
  int exit_code() const { return exit_code_; }

 private:
  Channel open(const std::string& scenario, const std::string& how, const std::string& name) {
    int both[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const int high = fcntl(both[1], F_DUPFD_CLOEXEC, 10);  // dup2 onto itself would keep close-on-exec set
    posix_spawn_file_actions_adddup2(&actions, high, 3);
    std::vector<std::string> words{BERTH_SHARE_HELPER, scenario, how, name};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (posix_spawn(&process_, BERTH_SHARE_HELPER, &actions, nullptr, arguments.data(), environ) != 0) std::abort();
    posix_spawn_file_actions_destroy(&actions);
    close(both[1]);
    close(high);
    return Channel::adopt(both[0]);
  }

  template <class Request>
  Stop resume(Request request) {
    int status = 0;
    for (int signal = 0;;) {
      if (ptrace(request, process_, nullptr, signal) != 0) return Stop::end;
      if (waitpid(process_, &status, 0) != process_) return Stop::end;
      if (!WIFSTOPPED(status)) {
        ended(status);
        return Stop::end;
      }
      const int stopped = WSTOPSIG(status);
      if (stopped == (SIGTRAP | 0x80)) return Stop::call;
      if (stopped == SIGTRAP) return Stop::step;
      if (stopped == SIGSTOP) return Stop::mark;
      signal = stopped;
    }
  }
  bool ended(int status) {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
    process_ = -1;
    return false;
  }

  pid_t process_ = -1;
  bool started_ = false;
  int exit_code_ = -1000;
  Channel channel_;
};

}  // namespace berth::testing

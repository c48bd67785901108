// SPDX-License-Identifier: Apache-2.0
#include "hostile/run_limited.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace berth::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kCalls = 4096;  // as in tests/hostile/deny.cc

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_with(std::vector<std::string> variables) {
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);  // the first of a name counts
  return variables;
}

// In a process group of its own, so that all of it can be killed.
pid_t start(const std::vector<std::string>& words, const std::vector<std::string>& variables, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) posix_spawn_file_actions_adddup2(&actions, output, standard);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = -1;
  const int failed =
      posix_spawnp(&process, words[0].c_str(), &actions, &attributes, pointers(words).data(), pointers(environment_with(variables)).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw std::runtime_error("the program cannot be started");
  return process;
}

bool has_ended(pid_t process, int& status) { return waitpid(process, &status, WNOHANG) == process; }

// What arrives until the process has ended. A process that it has left behind may keep the pipe open.
Ended follow(pid_t process, int output, Clock::time_point deadline) {
  Ended ended;
  int status = 0;
  for (bool over = false; !over;) {
    over = has_ended(process, status);
    if (!over && Clock::now() > deadline) {
      ended.timed_out = true;
      break;
    }
    pollfd ready{output, POLLIN, 0};
    char piece[4096];
    while (poll(&ready, 1, over ? 0 : 1) > 0) {
      const ssize_t got = read(output, piece, sizeof piece);
      if (got > 0) ended.output.append(piece, static_cast<std::size_t>(got));
      if (got > 0) continue;
      if (!over) usleep(500);  // it has closed its output, and not ended yet
      break;
    }
  }
  kill(-process, SIGKILL);
  if (ended.timed_out) waitpid(process, &status, 0);
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
  return ended;
}

}  // namespace

Ended run_limited(const std::vector<std::string>& words, const std::vector<std::string>& variables, std::chrono::seconds patience) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const pid_t process = start(words, variables, ends[1]);
  close(ends[1]);
  Ended ended = follow(process, ends[0], Clock::now() + patience);
  close(ends[0]);
  return ended;
}

Ended run_denied(const std::vector<std::string>& words, const std::string& deny, std::vector<std::string> variables) {
  variables.push_back("DENY_CALL=" + deny);
  variables.emplace_back("LD_PRELOAD=" BERTH_DENY);
  return run_limited(words, variables);
}

Recorded record_calls(const std::vector<std::string>& words, const std::vector<std::string>& variables) {
  const OwnFolder folder;
  const std::string path = folder.path() + "/calls";
  std::ofstream(path) << std::string(kCalls, '\0');
  Recorded recorded{{}, run_denied(words, "record:" + path, variables)};
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t call = 0; call < bytes.size(); ++call) {
    if (bytes[call] != '\0') recorded.calls.push_back(static_cast<long>(call));
  }
  return recorded;
}

OwnFolder::OwnFolder(const std::string& where) {
  path_ = (where.empty() ? fs::temp_directory_path().string() : where) + "/berth-hostile-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder in " + where);
}
OwnFolder::~OwnFolder() { fs::remove_all(path_); }
void OwnFolder::clear() const {
  for (const auto& entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
}

}  // namespace berth::testing

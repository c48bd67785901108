// SPDX-License-Identifier: Apache-2.0
#include "os/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "os/inject.h"
#include "os/process/no_cancel.h"
#include "os/process/wait_ready.h"

namespace berth::internal::os {

namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 10;

Failure child_failure(const char* why, int reason) noexcept { return {ErrorCode::device_error, reason, why}; }

// Both ends of the connection. A socket pair and not two pipes: writing to a socket without a reader need not
// raise SIGPIPE.
struct Ends {
  int ours = -1;
  int theirs = -1;

  Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() {
    const NoCancel whole;
    if (ours >= 0) close(ours);
    if (theirs >= 0) close(theirs);
  }

  Status open() noexcept {
    int both[2];
    if (must_fail("socketpair") || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0)
      return child_failure("no socket pair can be created", errno);
    ours = both[0];
    theirs = both[1];
    return move_up(ours) && move_up(theirs) ? Status() : child_failure("no socket pair can be created", errno);
  }

  // Moves a descriptor above the standard ones, whose numbers it gets when this process was started without
  // them.
  static bool move_up(int& descriptor) noexcept {
    if (descriptor > STDERR_FILENO) return true;
    const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (moved < 0) return false;
    close(descriptor);
    descriptor = moved;
    return true;
  }
};

// The file actions and attributes for posix_spawn. The calls fail only when the heap is exhausted.
class Preparations {
 public:
  explicit Preparations(int socket) noexcept {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) posix_spawn_file_actions_adddup2(&actions_, socket, standard);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    sigset_t set;
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&attributes_, &set);
    sigaddset(&set, SIGPIPE);  // this process may ignore it
    posix_spawnattr_setsigdefault(&attributes_, &set);
    posix_spawnattr_setpgroup(&attributes_, 0);  // a new process group
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  Preparations(const Preparations&) = delete;
  Preparations& operator=(const Preparations&) = delete;
  ~Preparations() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  const posix_spawn_file_actions_t* actions() const noexcept { return &actions_; }
  const posix_spawnattr_t* attributes() const noexcept { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=')); }

// A null-terminated array for exec; it points into `words`, which are not written to.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> out = variables;
  for (char** inherited = environ; inherited != nullptr && *inherited != nullptr; ++inherited) {
    const bool replaced = std::any_of(variables.begin(), variables.end(), [&](const auto& v) { return name_of(v) == name_of(*inherited); });
    if (!replaced) out.emplace_back(*inherited);
  }
  return out;
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& words, const std::vector<std::string>& variables) {
  Ends ends;
  if (const Status opened = ends.open(); !opened) return opened.failure();
  const std::vector<std::string> environment = environment_with(variables);
  const Preparations preparations(ends.theirs);
  pid_t process = -1;
  const int reason = must_fail("posix_spawn") ? errno
                                              : posix_spawnp(&process, words[0].c_str(), preparations.actions(), preparations.attributes(),
                                                             pointers(words).data(), pointers(environment).data());
  if (reason != 0) return child_failure("the program cannot be started", reason);
  return Child(process, std::exchange(ends.ours, -1));
}

Child::~Child() {
  const NoCancel whole;
  if (process_ < 0) return;
  close(socket_);
  kill(-process_, SIGKILL);  // not reaped yet, so the pid is still its own
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status Child::send_line(std::string_view line) {
  const NoCancel whole;
  const std::string text = std::string(line) + '\n';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = must_fail("send") ? -1 : send(socket_, text.data() + done, text.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return child_failure("the program has ended", errno);
    if (sent < 0) return child_failure("the program does not read what it is sent", errno);
    done += static_cast<std::size_t>(sent);
  }
  return {};
}

Result<std::string> Child::read_line(std::chrono::milliseconds patience) {
  const NoCancel whole;
  const std::uint64_t deadline_ns = deadline_after(patience);
  for (;;) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (unread_.size() >= kLongestLine) return child_failure("the program sends a line without an end", EMSGSIZE);
    if (!wait_ready(socket_, POLLIN, deadline_ns))
      return child_failure(errno == ETIMEDOUT ? "the program does not answer" : "the program's output cannot be read", errno);
    char piece[4096];
    const ssize_t got = must_fail("recv") ? -1 : recv(socket_, piece, sizeof(piece), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return child_failure("the program has ended", got < 0 ? errno : 0);
    if (got < 0) return child_failure("the program's output cannot be read", errno);
    unread_.append(piece, static_cast<std::size_t>(got));
  }
}

}  // namespace berth::internal::os

// SPDX-License-Identifier: Apache-2.0
#include "os/process/named_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "os/file/file_calls.h"
#include "os/inject.h"
#include "os/process/no_cancel.h"
#include "os/process/socket_calls.h"
#include "os/system.h"

namespace berth::internal::os {

namespace {

struct Address {
  sockaddr_un name{};

  explicit Address(int file) noexcept : Address(file, "") {}
  Address(int folder, const char* in_it) noexcept {
    name.sun_family = AF_UNIX;
    std::snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d%s%s", folder, *in_it == 0 ? "" : "/", in_it);
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&name); }
};

Descriptor new_socket(int kind) noexcept { return Descriptor(must_fail("socket") ? -1 : socket(AF_UNIX, kind | SOCK_CLOEXEC, 0)); }

constexpr const char* kNotBound = "the socket cannot listen under that name";

Failure bind_failure() noexcept {
  switch (errno) {
    case EADDRINUSE: return {ErrorCode::already_exists, errno, "there is a file of that name"};
    case ENOENT: return {ErrorCode::not_found, errno, "the folder was removed, or /proc is not mounted"};
    case ENOSPC:
    case EDQUOT: return {ErrorCode::out_of_memory, errno, "the folder's file system has no room for another name"};
    case EROFS: return {ErrorCode::device_unavailable, errno, "the folder's file system is read-only"};
    default: return socket_failure(kNotBound);
  }
}

// The kernel takes 0 for no limit. A connection that did not wait long enough waits again.
void limit_wait(int socket, std::uint64_t deadline_ns) noexcept {
  const std::uint64_t now = steady_time_ns();
  const std::uint64_t left_us = deadline_ns > now ? std::max<std::uint64_t>((deadline_ns - now) / 1000, 1) : 1;
  timeval time{};
  time.tv_sec = static_cast<time_t>(left_us / 1'000'000);
  time.tv_usec = static_cast<suseconds_t>(left_us % 1'000'000);
  (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

}  // namespace

Result<Descriptor> open_socket_name(int folder, const char* name) noexcept {
  Descriptor file(insist("openat", [&] { return openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC); }));
  if (!file && errno == ENOENT) return Failure{ErrorCode::not_found, 0, "no process listens under that name"};
  if (!file) return socket_failure("the name cannot be opened");
  return file;
}

Result<Descriptor> listen_at(int folder, const char* name) noexcept {
  Descriptor made = new_socket(SOCK_SEQPACKET);
  if (!made) return socket_failure("no socket can be created");
  const Address address(folder, name);
  if (must_fail("bind") || bind(made.number(), address.get(), sizeof address.name) != 0) return bind_failure();
  // As many as the system lets wait: they are all of this user.
  const bool listens =
      !must_fail("fchmodat") && fchmodat(folder, name, 0600, 0) == 0 && !must_fail("listen") && listen(made.number(), SOMAXCONN) == 0;
  if (listens) return made;
  const Failure failed = socket_failure(kNotBound);
  (void)unlinkat(folder, name, 0);
  return failed;
}

Result<Descriptor> connect_to(int file, std::uint64_t deadline_ns) noexcept {
  const NoCancel whole;
  Descriptor made = new_socket(SOCK_SEQPACKET);
  if (!made) return socket_failure("no socket can be created");
  const Address address(file);
  for (;;) {
    limit_wait(made.number(), deadline_ns);
    if (!must_fail("connect") && connect(made.number(), address.get(), sizeof address.name) == 0) return made;
    if (errno == ECONNREFUSED) return Failure{ErrorCode::not_found, 0, "no process listens under that name"};
    if (errno == ENOENT) return Failure{ErrorCode::device_unavailable, errno, "a name is reached through /proc, which is not mounted"};
    if (errno == EPROTOTYPE) return Failure{ErrorCode::untrusted, errno, "the socket of that name is not of berth"};
    if (errno != EINTR && errno != EAGAIN) return socket_failure("the name cannot be connected to");
    if (steady_time_ns() >= deadline_ns)
      return Failure{ErrorCode::timeout, 0, "the process that listens there did not accept enough in that time to make room in its queue"};
  }
}

// A socket of another kind is refused before it takes a place in a queue, and by an error that tells whether there
// is one.
bool is_listened_to(int file) noexcept {
  const Descriptor probe = new_socket(SOCK_DGRAM);
  if (!probe) return true;
  const Address address(file);
  return insist("probe", [&] { return connect(probe.number(), address.get(), sizeof address.name); }) == 0 || errno != ECONNREFUSED;
}

Result<bool> try_lock_folder(int folder) noexcept {
  if (insist("flock", [&] { return flock(folder, LOCK_EX | LOCK_NB); }) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return errno == ENOLCK ? Failure{ErrorCode::out_of_memory, errno, "the kernel refused a lock"}
                         : Failure{ErrorCode::device_unavailable, errno, "the folder's file system has no locks"};
}

void unlock_folder(int folder) noexcept { (void)flock(folder, LOCK_UN); }

}  // namespace berth::internal::os

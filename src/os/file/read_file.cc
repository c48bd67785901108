// SPDX-License-Identifier: Apache-2.0
#include "os/file/read_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/allowance.h"
#include "os/file/descriptor.h"
#include "os/file/file_calls.h"
#include "os/process/no_cancel.h"

namespace berth::internal::os {

namespace {

// The size of a regular file.
Result<std::size_t> size_of(int descriptor) noexcept {
  struct stat facts;
  if (must_fail("fstat") || fstat(descriptor, &facts) != 0) return errno_failure("the file's size is not known");
  if (!S_ISREG(facts.st_mode)) return Failure{ErrorCode::unsupported, 0, "it is not a regular file"};
  return static_cast<std::size_t>(facts.st_size);
}

constexpr std::size_t kReadAtATime = std::size_t{1} << 20;
constexpr int kOpen = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // opening a FIFO does not block

// The fallback for kernels before Linux 5.6 and sandboxes without openat2: opens each path component in turn,
// and rejects links and "..".
int open_step_by_step(int folder, const char* path) noexcept {
  int at = dup(folder);
  while (at >= 0 && *path != '\0') {
    char name[256];
    const std::size_t length = std::strcspn(path, "/");
    if (length >= sizeof(name)) {
      close(at);
      errno = ENAMETOOLONG;
      return -1;
    }
    std::memcpy(name, path, length);
    name[length] = '\0';
    path += length + (path[length] == '/' ? 1 : 0);
    if (length == 0 || std::strcmp(name, ".") == 0) continue;
    const bool up = std::strcmp(name, "..") == 0;
    const int next = up ? -1 : openat(at, name, kOpen | O_NOFOLLOW);
    const int reason = up ? EXDEV : errno;
    close(at);
    errno = reason;
    at = next;
  }
  return at;
}

int open_beneath(int folder, const char* path) noexcept {
  open_how how{};
  how.flags = kOpen;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const int opened = insist("openat2", [&] { return static_cast<int>(syscall(SYS_openat2, folder, path, &how, sizeof(how))); });
  return opened < 0 && (errno == ENOSYS || errno == EPERM) ? open_step_by_step(folder, path) : opened;
}

// Returns when a FIFO, opened without blocking, has a writer. What is in it stays there.
Status await_writer(int fifo, std::chrono::milliseconds patience) noexcept {
  int other[2];
  if (must_fail("pipe2") || pipe2(other, O_CLOEXEC) != 0) return errno_failure("no pipe can be made");
  const Descriptor out(other[0]);
  const Descriptor in(other[1]);
  // Without a writer there is nothing to copy, and nothing to wait for: 0.
  if (tee(fifo, in.number(), 1, SPLICE_F_NONBLOCK) != 0) return {};
  pollfd waits{.fd = fifo, .events = POLLIN, .revents = 0};
  const int ready = insist("poll", [&] { return poll(&waits, 1, static_cast<int>(patience.count())); });
  if (ready < 0) return errno_failure("the file cannot be waited for");
  if (ready == 0 && tee(fifo, in.number(), 1, SPLICE_F_NONBLOCK) == 0) return Failure{ErrorCode::timeout, ETIMEDOUT, "nobody writes to it"};
  return {};
}

// Returns when there is something to read, or the end. Throws like base::checkpoint_now, however long the writer is silent.
Status await_bytes(int descriptor) {
  constexpr int kLookEveryMs = 50;
  pollfd waits{.fd = descriptor, .events = POLLIN, .revents = 0};
  for (int ready = 0; ready == 0;) {
    base::checkpoint_now();
    ready = insist("poll", [&] { return poll(&waits, 1, kLookEveryMs); });
    if (ready < 0) return errno_failure("the file cannot be waited for");
  }
  return {};
}

}  // namespace

Result<std::string> read_whole(const char* path, std::size_t most, std::chrono::milliseconds patience) {
  const NoCancel whole;
  const Descriptor file(insist("open", [&] { return open(path, kOpen | O_NOCTTY); }));
  if (!file) return errno_failure("the file cannot be opened");
  struct stat facts;
  if (must_fail("fstat") || fstat(file.number(), &facts) != 0) return errno_failure("the file's status cannot be read");
  if (S_ISDIR(facts.st_mode)) return Failure{ErrorCode::unsupported, EISDIR, "it is a folder"};
  if (S_ISFIFO(facts.st_mode)) {
    if (const Status writer = await_writer(file.number(), patience); !writer) return writer.failure();
  }
  const std::size_t expected = S_ISREG(facts.st_mode) ? static_cast<std::size_t>(facts.st_size) : 0;
  constexpr Failure kTooLong{ErrorCode::unsupported, EFBIG, "it is too long"};
  if (expected > most) return kTooLong;
  std::string bytes;
  bytes.reserve(expected + 1);  // one byte more, to see the end
  for (std::size_t size = 0;;) {
    base::checkpoint_now();
    const std::size_t room = size < bytes.capacity() ? bytes.capacity() - size : kReadAtATime;
    bytes.resize(size + std::min(room, kReadAtATime));
    const ssize_t got = insist("read", [&] { return read(file.number(), bytes.data() + size, bytes.size() - size); });
    if (got < 0 && errno == EAGAIN && !S_ISREG(facts.st_mode)) {
      if (const Status waited = await_bytes(file.number()); !waited) return waited.failure();
      continue;
    }
    if (got < 0 && errno == EAGAIN) return Failure{ErrorCode::io_error, 0, "it has no end: it waits for what is yet to be written"};
    if (got < 0) return errno_failure("the file cannot be read", ErrorCode::io_error);
    size += static_cast<std::size_t>(got);
    if (expected != 0) base::reached(static_cast<double>(size) / static_cast<double>(expected));
    if (size > most) return kTooLong;
    if (got > 0) continue;
    bytes.resize(size);
    if (size >= expected) return bytes;
    const bool is_cut = fstat(file.number(), &facts) != 0 || static_cast<std::size_t>(facts.st_size) < expected;
    return Failure{ErrorCode::io_error, 0, is_cut ? "it was cut while it was read" : "it gives fewer bytes than its size says"};
  }
}

Result<std::uint64_t> size_beneath(const char* folder, const char* path) noexcept {
  const NoCancel whole;
  const Descriptor root(insist("open", [&] { return open(*folder == '\0' ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!root) return errno_failure("the folder cannot be opened");
  const Descriptor file(open_beneath(root.number(), path));
  if (!file && (errno == ELOOP || errno == EXDEV))
    return errno_failure("the path leads out of the folder, or through a link", ErrorCode::path_escape);
  if (!file) return errno_failure("the file cannot be opened");
  const Result<std::size_t> bytes = size_of(file.number());
  if (!bytes.ok()) return bytes.failure();
  return static_cast<std::uint64_t>(*bytes);
}

}  // namespace berth::internal::os

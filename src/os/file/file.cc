// SPDX-License-Identifier: Apache-2.0
#include "os/file/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "berth/base/checked.h"
#include "os/file/descriptor.h"
#include "os/file/file_calls.h"
#include "os/file/shared_file.h"
#include "os/process/no_cancel.h"

namespace berth::internal::os {

namespace {

constexpr int kAppend = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

// A file that was there before: one that somebody else laid out is not opened, or not kept.
Result<Descriptor> open_existing(const char* path) noexcept {
  Descriptor found(insist("open", [&] { return open(path, kAppend); }));
  if (!found && (errno == ELOOP || errno == ENXIO)) return Failure{ErrorCode::untrusted, errno, "there is a link or a pipe of that name"};
  if (!found) return errno_failure("the file cannot be opened");
  struct stat facts;
  if (must_fail("fstat") || fstat(found.number(), &facts) != 0) return errno_failure("the file's status cannot be read");
  if (!S_ISREG(facts.st_mode) || facts.st_uid != geteuid() || facts.st_nlink != 1)
    return Failure{ErrorCode::untrusted, EPERM, "what is there is no regular file of this user with one name"};
  return found;
}

}  // namespace

Result<int> create_own_file(const char* path) noexcept {
  constexpr std::uint64_t kLocked = std::uint64_t{1} << 62;  // a byte that no file has
  const NoCancel whole;
  Descriptor own(insist("open", [&] { return open(path, kAppend | O_CREAT | O_EXCL, 0666); }));
  if (!own && errno == EEXIST) {
    Result<Descriptor> existing = open_existing(path);
    if (!existing) return existing.failure();
    own = std::move(*existing);
  }
  if (!own) return errno_failure("the file cannot be created");
  const Result<bool> ours = try_lock_byte(own.number(), kLocked);
  // Where nothing can be locked, it is nobody's.
  if (ours && !*ours) return Failure{ErrorCode::busy, EAGAIN, "another process writes to the file"};
  if (ftruncate(own.number(), 0) != 0) return errno_failure("the file cannot be emptied");
  return own.take();
}

namespace {

// Whether the file would become longer than the process may make files: the write would raise SIGXFSZ.
bool would_be_too_long(int descriptor, std::size_t count) noexcept {
  rlimit limit{};
  struct stat facts;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
  const int flags = fcntl(descriptor, F_GETFL);
  const off_t at = flags >= 0 && (flags & O_APPEND) != 0 ? facts.st_size : lseek(descriptor, 0, SEEK_CUR);
  return at >= 0 && !fits(static_cast<std::uint64_t>(at), count, limit.rlim_cur);
}

}  // namespace

Status write_file(int descriptor, const void* bytes, std::size_t count) noexcept {
  const NoCancel whole;
  if (would_be_too_long(descriptor, count)) return kFilesAreLimited;
  const auto* at = static_cast<const std::byte*>(bytes);
  while (count > 0) {
    const ssize_t written = must_fail("write") ? -1 : write(descriptor, at, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return errno_failure("the file cannot be written");
    at += written;
    count -= static_cast<std::size_t>(written);
  }
  return {};
}

Status cut_file(int descriptor, std::uint64_t bytes) noexcept {
  if (insist("ftruncate", [&] { return ftruncate(descriptor, static_cast<off_t>(bytes)); }) != 0)
    return errno_failure("the file cannot be truncated");
  return {};
}

void close_file(int descriptor) noexcept { close_descriptor(descriptor); }

Status rename_file(const char* from, const char* to) noexcept {
  if (must_fail("rename") || rename(from, to) != 0) return errno_failure("the file cannot be renamed");
  return {};
}

void remove_file(const char* path) noexcept { unlink(path); }

}  // namespace berth::internal::os

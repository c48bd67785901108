// SPDX-License-Identifier: Apache-2.0
#include "os/file/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "os/file/descriptor.h"
#include "os/file/file_calls.h"
#include "os/file/shared_file.h"
#include "os/process/no_cancel.h"

namespace berth::internal::os {

Result<int> create_file(const char* path) noexcept {
  const NoCancel whole;
  const int descriptor = must_fail("open") ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno_failure("the file cannot be created");
  return descriptor;
}

Result<int> create_own_file(const char* path) noexcept {
  constexpr std::uint64_t kLocked = std::uint64_t{1} << 62;  // a byte that no file has
  const NoCancel whole;
  // Emptied only when it is ours.
  Descriptor made(must_fail("open") ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!made) return errno_failure("the file cannot be created");
  const Result<bool> ours = try_lock_byte(made.number(), kLocked);
  // What cannot be locked, such as a pipe, is nobody's.
  if (ours && !*ours) return Failure{ErrorCode::busy, EAGAIN, "another process writes to the file"};
  if (ftruncate(made.number(), 0) != 0 && errno != EINVAL) return errno_failure("the file cannot be emptied");
  return made.take();
}

Status write_file(int descriptor, const void* bytes, std::size_t count) noexcept {
  const NoCancel whole;
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
  if (must_fail("ftruncate") || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) return errno_failure("the file cannot be truncated");
  return {};
}

void close_file(int descriptor) noexcept { close_descriptor(descriptor); }

Status rename_file(const char* from, const char* to) noexcept {
  if (must_fail("rename") || rename(from, to) != 0) return errno_failure("the file cannot be renamed");
  return {};
}

void remove_file(const char* path) noexcept { unlink(path); }

}  // namespace berth::internal::os

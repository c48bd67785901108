// SPDX-License-Identifier: Apache-2.0
#include "os/file/read_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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
  const auto opened = must_fail("openat2") ? -1 : static_cast<int>(syscall(SYS_openat2, folder, path, &how, sizeof(how)));
  return opened < 0 && (errno == ENOSYS || errno == EPERM) ? open_step_by_step(folder, path) : opened;
}

}  // namespace

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Result<MappedFile> map_file(const char* path) noexcept {
  const NoCancel whole;
  struct stat facts;
  // Checked before opening: opening and closing a pipe would break its writer.
  if (must_fail("stat") || stat(path, &facts) != 0) return errno_failure("the file cannot be opened");
  if (!S_ISREG(facts.st_mode)) return Failure{ErrorCode::unsupported, 0, "it is not a regular file"};
  const Descriptor file(must_fail("open") ? -1 : open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return errno_failure("the file cannot be opened");
  const Result<std::size_t> bytes = size_of(file.number());
  if (!bytes.ok()) return bytes.failure();
  if (*bytes == 0) return MappedFile();
  void* const data = must_fail("mmap") ? MAP_FAILED : mmap(nullptr, *bytes, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED) return errno_failure("the file cannot be mapped");
  return MappedFile(data, *bytes);
}

Result<std::uint64_t> size_beneath(const char* folder, const char* path) noexcept {
  const NoCancel whole;
  const Descriptor root(must_fail("open") ? -1 : open(*folder == '\0' ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
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

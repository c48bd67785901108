// SPDX-License-Identifier: Apache-2.0
#include "os/file/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "os/file/file_calls.h"
#include "os/inject.h"
#include "os/process/no_cancel.h"

namespace berth::internal::os {

namespace {

Failure file_error(const char* why) noexcept {
  switch (errno) {
    case ENOMEM:
    case EAGAIN:
    case ENOSPC: return {ErrorCode::out_of_memory, errno, why};
    case EMFILE:
    case ENFILE: return {ErrorCode::too_many_descriptors, errno, why};
    case EACCES:
    case EPERM: return {ErrorCode::permission_denied, errno, why};
    default: return {ErrorCode::device_error, errno, why};
  }
}

bool may_be_that_long(std::uint64_t bytes) noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

struct flock one_byte(short type, std::uint64_t byte) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return lock;
}

}  // namespace

void close_descriptor(int number) noexcept {
  const NoCancel whole;
  ::close(number);
}

Result<Descriptor> make_memory_file(const char* label, std::uint64_t bytes) noexcept {
  if (bytes > LONG_MAX || !may_be_that_long(bytes)) return kFilesAreLimited;
  Descriptor file(must_fail("memfd_create") ? -1 : memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return file_error("memfd_create refused a file for shared memory");
  if (insist("ftruncate", [&] { return ftruncate(file.number(), static_cast<off_t>(bytes)); }) != 0)
    return file_error("ftruncate refused to size the file");
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (must_fail("seal") || fcntl(file.number(), F_ADD_SEALS, kSeals) != 0) return file_error("the file cannot be sealed");
  return file;
}

Result<Descriptor> open_again(int descriptor) noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  // Without O_NONBLOCK an open waits for whoever has a lease on the file (F_SETLEASE), 45 seconds by default.
  Descriptor file(insist("open", [&] { return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK); }));
  if (!file && errno == EWOULDBLOCK) return Failure{ErrorCode::untrusted, errno, "another process has a lease on the file (F_SETLEASE)"};
  if (!file && errno == ENOENT)
    return Failure{ErrorCode::device_unavailable, errno, "a file is reopened through /proc, which is not mounted"};
  if (!file) return file_error("the file cannot be reopened through /proc/self/fd");
  return file;
}

Result<Descriptor> duplicate(int descriptor) noexcept {
  Descriptor file(must_fail("dup") ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!file) return file_error("the descriptor cannot be duplicated");
  return file;
}

void keep_from_programs(int descriptor) noexcept { (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

Result<FileFacts> facts_of(int descriptor) noexcept {
  struct stat found;
  if (must_fail("fstat") || fstat(descriptor, &found) != 0) return file_error("fstat refused");
  FileFacts facts{.bytes = static_cast<std::uint64_t>(found.st_size),
                  .device = static_cast<std::uint64_t>(found.st_dev),
                  .inode = static_cast<std::uint64_t>(found.st_ino),
                  .used_bytes = static_cast<std::uint64_t>(found.st_blocks) * 512,
                  .user = found.st_uid,
                  .mode = found.st_mode & 07777U,
                  .links = static_cast<std::uint32_t>(found.st_nlink),
                  .is_regular = S_ISREG(found.st_mode),
                  .is_socket = S_ISSOCK(found.st_mode)};
  const int seals = facts.is_regular ? fcntl(descriptor, F_GET_SEALS) : -1;
  facts.never_shrinks = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  facts.is_never_written = seals >= 0 && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0;
  return facts;
}

Status allocate_range(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept {
  // In pieces: the kernel undoes a call that a signal interrupts, so a long call would never complete under a
  // periodic timer.
  constexpr std::uint64_t kMostAllocated = 64ULL << 20;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t piece = std::min(kMostAllocated, bytes - done);
    const auto call = [&] { return fallocate(descriptor, 0, static_cast<off_t>(offset + done), static_cast<off_t>(piece)); };
    if (insist("fallocate", call) != 0) return file_error("fallocate found no memory for shared pages");
    done += piece;
  }
  return {};
}

Status punch_hole(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (bytes == 0) return {};
  const auto call = [&] {
    return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  };
  if (insist("punch", call) != 0) return file_error("fallocate refused to decommit shared pages");
  return {};
}

Result<void*> map_file_range(int descriptor, std::uint64_t offset, std::size_t bytes, Access access) noexcept {
  const Result<Descriptor> own = open_again(descriptor);
  if (!own) return own.failure();
  const int rights = access == Access::write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const data = must_fail("mmap") ? MAP_FAILED : mmap(nullptr, bytes, rights, MAP_SHARED, own->number(), static_cast<off_t>(offset));
  if (data == MAP_FAILED && errno == ENOMEM) return file_error("mmap found no addresses, or no mapping is left, for shared memory");
  if (data == MAP_FAILED) return file_error("mmap refused to map shared memory");
  return data;
}

Status map_file_range_at(void* address, int descriptor, std::uint64_t offset, std::size_t bytes) noexcept {
  constexpr int kRights = PROT_READ | PROT_WRITE;
  if (must_fail("mmap") || mmap(address, bytes, kRights, MAP_SHARED | MAP_FIXED, descriptor, static_cast<off_t>(offset)) == MAP_FAILED)
    return file_error("mmap refused to map shared memory");
  return {};
}

void unmap(void* address, std::size_t bytes) noexcept { munmap(address, bytes); }

Result<bool> try_lock_byte(int descriptor, std::uint64_t byte) noexcept {
  struct flock lock = one_byte(F_WRLCK, byte);
  if (insist("lock", [&] { return fcntl(descriptor, F_OFD_SETLK, &lock); }) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  if (errno == ENOLCK) errno = ENOMEM;
  return file_error("the kernel refused a lock");
}

void unlock_byte(int descriptor, std::uint64_t byte) noexcept {
  struct flock lock = one_byte(F_UNLCK, byte);
  (void)fcntl(descriptor, F_OFD_SETLK, &lock);
}

Result<bool> is_byte_locked(int descriptor, std::uint64_t byte) noexcept {
  struct flock lock = one_byte(F_WRLCK, byte);
  if (insist("getlock", [&] { return fcntl(descriptor, F_OFD_GETLK, &lock); }) != 0)
    return file_error("the kernel does not say who has a lock");
  return lock.l_type != F_UNLCK;
}

std::uint32_t user_id() noexcept { return geteuid(); }

Status random_bytes(void* target, std::size_t bytes) noexcept {
  Descriptor device;
  auto* at = static_cast<unsigned char*>(target);
  while (bytes > 0) {
    const ssize_t got = device ? insist("read_random", [&] { return read(device.number(), at, bytes); })
                               : insist("getrandom", [&] { return getrandom(at, bytes, 0); });
    if (got > 0) {
      at += got;
      bytes -= static_cast<std::size_t>(got);
      continue;
    }
    // Whoever asks for them wants to make a file, whose permissions are not what is at fault.
    const Failure refused = errno_failure("getrandom and /dev/urandom are refused, so there are no random bytes");
    if (device) return refused;
    device = Descriptor(insist("open_random", [&] { return open("/dev/urandom", O_RDONLY | O_CLOEXEC); }));
    if (!device) return refused;
  }
  return {};
}

std::uint64_t wall_time_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

void sleep_us(unsigned microseconds) noexcept {
  const NoCancel whole;
  const timespec pause{microseconds / 1'000'000, static_cast<long>(microseconds % 1'000'000) * 1000};
  nanosleep(&pause, nullptr);
}

}  // namespace berth::internal::os

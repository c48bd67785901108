// SPDX-License-Identifier: Apache-2.0
#include "os/file/data_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "berth/base/checked.h"
#include "os/file/file_calls.h"
#include "os/file/named_files.h"

namespace berth::internal::os {

namespace {

// The largest piece of one call, so that signals can be handled in between.
constexpr std::size_t kPiece = std::size_t{64} << 20;

FileStamp stamp_from(const struct stat& found) noexcept {
  return {
      .device = static_cast<std::uint64_t>(found.st_dev),
      .inode = static_cast<std::uint64_t>(found.st_ino),
      .bytes = static_cast<std::uint64_t>(found.st_size),
      .modified_ns = static_cast<std::uint64_t>(found.st_mtim.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(found.st_mtim.tv_nsec)};
}

// The pages that a range overlaps.
struct Pages {
  char* begin;
  std::size_t bytes;
};

Pages pages_of(const void* address, std::size_t bytes) noexcept {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t begin = at & ~(page - 1);
  return {reinterpret_cast<char*>(begin), ((at - begin) + bytes + page - 1) & ~(page - 1)};
}

}  // namespace

Result<Descriptor> open_data(const char* path, OpenFor use) noexcept {
  // O_NONBLOCK: opening a FIFO or a device must not block. No O_TRUNC: the type is checked before the file is
  // truncated.
  const int way = use == OpenFor::read ? O_RDONLY : O_RDWR;
  const int flags = way | (use == OpenFor::create ? O_CREAT : 0) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  Descriptor file(insist("open", [&] { return open(path, flags, 0666); }));
  // A process holds a lease on the file, such as a load: only a blocking open makes it release the lease. Only
  // regular files have leases.
  if (struct stat known; !file && errno == EAGAIN && stat(path, &known) == 0 && S_ISREG(known.st_mode))
    file = Descriptor(insist("open", [&] { return open(path, flags & ~O_NONBLOCK, 0666); }));
  if (!file) return file_failure(use == OpenFor::create ? "the file cannot be created" : "the file cannot be opened");
  struct stat found;
  if (must_fail("fstat") || fstat(file.number(), &found) != 0) return file_failure("the file's status cannot be read");
  if (S_ISDIR(found.st_mode)) return Failure{ErrorCode::unsupported, EISDIR, "it is a folder, and not a file"};
  if (!S_ISREG(found.st_mode)) return Failure{ErrorCode::unsupported, 0, "it is not a regular file"};
  if (use == OpenFor::create && insist("ftruncate", [&] { return ftruncate(file.number(), 0); }) != 0)
    return file_failure("the file cannot be truncated");
  return file;
}

Result<FileStamp> stamp_of(int descriptor) noexcept {
  struct stat found;
  if (must_fail("fstat") || fstat(descriptor, &found) != 0) return file_failure("the file's status cannot be read");
  return stamp_from(found);
}

Result<FileStamp> stamp_of_path(const char* path) noexcept {
  struct stat found;
  if (must_fail("stat") || stat(path, &found) != 0) return file_failure("the file's status cannot be read");
  return stamp_from(found);
}

Result<std::size_t> read_at(int descriptor, std::uint64_t offset, void* target, std::size_t bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t piece = std::min(bytes - done, kPiece);
    const auto call = [&] { return pread(descriptor, static_cast<char*>(target) + done, piece, static_cast<off_t>(offset + done)); };
    const ssize_t got = insist("pread", call);
    if (got < 0) return file_failure("the file cannot be read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Status write_at(int descriptor, std::uint64_t offset, const void* source, std::size_t bytes) noexcept {
  // A write past the process's limit would raise SIGXFSZ.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && !fits(offset, bytes, limit.rlim_cur))
    return kFilesAreLimited;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(bytes - done, kPiece);
    const auto call = [&] { return pwrite(descriptor, static_cast<const char*>(source) + done, piece, static_cast<off_t>(offset + done)); };
    const ssize_t put = insist("pwrite", call);
    if (put < 0) return file_failure("the file cannot be written");
    done += static_cast<std::size_t>(put);
  }
  return {};
}

std::optional<std::uint64_t> free_bytes(int descriptor) noexcept {
  struct statvfs disk;
  if (must_fail("fstatvfs") || fstatvfs(descriptor, &disk) != 0 || disk.f_blocks == 0) return std::nullopt;
  const std::uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;  // some are reserved for root
  return try_multiply<std::uint64_t>(blocks, disk.f_frsize);
}

Status set_data_size(int descriptor, std::uint64_t bytes, std::uint64_t had) noexcept {
  if (const Status sized = set_file_size(descriptor, bytes); !sized) return sized;
  for (std::uint64_t done = had; done < bytes;) {
    const std::uint64_t piece = std::min<std::uint64_t>(bytes - done, kPiece);
    const auto call = [&] { return fallocate(descriptor, 0, static_cast<off_t>(done), static_cast<off_t>(piece)); };
    if (insist("fallocate", call) != 0) {
      // A file system without preallocation, or a sandbox without the call: writing finds out.
      if (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS || errno == EPERM) break;
      const Failure full = file_failure("the disk's space cannot be reserved");
      (void)set_file_size(descriptor, had).ok();  // frees what was allocated
      return full;
    }
    done += piece;
  }
  return {};
}

Result<void*> map_data(int descriptor, std::uint64_t offset, std::size_t bytes, Mapping mapping) noexcept {
  const int rights = mapping == Mapping::read ? PROT_READ : PROT_READ | PROT_WRITE;
  const int kind = mapping == Mapping::private_write ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
  void* const data = must_fail("mmap") ? MAP_FAILED : mmap(nullptr, bytes, rights, kind, descriptor, static_cast<off_t>(offset));
  if (data == MAP_FAILED && errno == ENOMEM)
    return Failure{ErrorCode::out_of_memory, ENOMEM, "the process's address space, or its number of mappings, does not allow it"};
  if (data == MAP_FAILED) return file_failure("the file cannot be mapped");
  return data;
}

Result<bool> populate(const void* address, std::size_t bytes, bool write) noexcept {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ and _WRITE, missing in older headers
  constexpr int kPopulateWrite = 23;
  const Pages pages = pages_of(address, bytes);
  for (std::size_t done = 0; done < pages.bytes;) {
    const std::size_t piece = std::min(pages.bytes - done, kPiece);
    const auto call = [&] { return madvise(pages.begin + done, piece, write ? kPopulateWrite : kPopulateRead); };
    if (insist("populate", call) != 0) {
      if (errno == EINVAL) return false;
      if (errno == EFAULT) return Failure{ErrorCode::io_error, EIO, "the disk failed, or the bytes are past the end of the file"};
      return file_failure("the file's pages cannot be read");
    }
    done += piece;
  }
  return true;
}

Status write_back(void* address, std::size_t bytes) noexcept {
  const Pages pages = pages_of(address, bytes);
  if (insist("msync", [&] { return msync(pages.begin, pages.bytes, MS_SYNC); }) != 0)
    return file_failure("the written bytes cannot be flushed to disk");
  return {};
}

void advise(void* address, std::size_t bytes, Advice advice) noexcept {
  constexpr int kAdvice[] = {MADV_WILLNEED, MADV_SEQUENTIAL, MADV_HUGEPAGE, MADV_DONTNEED};
  const Pages pages = pages_of(address, bytes);
  (void)madvise(pages.begin, pages.bytes, kAdvice[static_cast<std::size_t>(advice)]);
}

void forget_cached(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept {
  (void)posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

}  // namespace berth::internal::os

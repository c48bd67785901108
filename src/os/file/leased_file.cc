// SPDX-License-Identifier: Apache-2.0
#include "os/file/leased_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "os/file/data_file.h"
#include "os/inject.h"
#include "os/process/no_cancel.h"

namespace berth::internal::os {

namespace {

// Whether the file system is local. On network and stacked ones a lease may be granted here while the file is
// truncated on another machine, or in the lower layer.
bool is_local(int descriptor) noexcept {
  constexpr decltype(statfs::f_type) kXfs = 0x58465342;
  constexpr decltype(statfs::f_type) kLocal[] = {EXT4_SUPER_MAGIC, kXfs, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC};
  struct statfs facts;
  if (must_fail("fstatfs") || fstatfs(descriptor, &facts) != 0) return false;
  return std::ranges::find(kLocal, facts.f_type) != std::end(kLocal);
}

}  // namespace

Result<LeasedFile> LeasedFile::hold(int descriptor, std::size_t bytes) noexcept {
  const NoCancel whole;
  const auto refused = [] { return Failure{ErrorCode::unsupported, errno, "the file cannot be held still"}; };
  if (!is_local(descriptor)) return Failure{ErrorCode::unsupported, 0, "its file system is not known to be of this machine alone"};
  char self[64];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor);
  LeasedFile held(Descriptor(must_fail("open") ? -1 : open(self, O_RDONLY | O_CLOEXEC)));
  if (!held.lease_) return refused();
  // No signal may announce a lease break, as it would end the process: `touch` polls instead. Until the owner
  // is removed below, the signal is SIGURG, which is ignored by default.
  if (must_fail("fcntl") || fcntl(held.lease_.number(), F_SETSIG, SIGURG) != 0) return refused();
  if (must_fail("fcntl") || fcntl(held.lease_.number(), F_SETLEASE, F_RDLCK) != 0) return refused();
  if (must_fail("fcntl") || fcntl(held.lease_.number(), F_SETOWN, 0) != 0) return refused();
  const Result<void*> mapped = map_data(descriptor, 0, bytes, Mapping::read);
  if (!mapped) return mapped.failure();
  held.data_ = static_cast<const std::byte*>(*mapped);
  held.bytes_ = bytes;
  return held;
}

LeasedFile::~LeasedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), bytes_);
  // Released explicitly, and not by closing the last descriptor: a child that was forked meanwhile has one too.
  if (lease_) fcntl(lease_.number(), F_SETLEASE, F_UNLCK);
}

const std::byte* LeasedFile::touch(std::uint64_t offset, std::size_t bytes) const noexcept {
  const Result<bool> there = populate(data_ + offset, bytes, false);
  if (!there || !*there) return nullptr;
  // Checked last: a writer that comes from now on is blocked for longer than the read takes.
  const bool held = !must_fail("fcntl") && fcntl(lease_.number(), F_GETLEASE) == F_RDLCK;
  return held ? data_ + offset : nullptr;
}

void LeasedFile::drop_pages(std::uint64_t offset, std::size_t bytes) const noexcept {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = (offset + page - 1) & ~(page - 1);
  const std::uint64_t end = (offset + bytes) & ~(page - 1);
  if (begin < end) (void)madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace berth::internal::os

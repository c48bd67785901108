// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// A file under a read lease (F_SETLEASE in fcntl(2)), which cannot be truncated or written while it is held, so
// that its mapped bytes can be read without the risk of SIGBUS. The kernel blocks a process that opens it for
// writing, or truncates it by name, until the lease is released or /proc/sys/fs/lease-break-time expires (45
// seconds by default). Renaming and unlinking are not blocked. `touch` and `drop_pages` may be called from any
// thread.
namespace berth::internal::os {

class LeasedFile {
 public:
  // Maps and leases the first `bytes` of an open file. Fails with `unsupported` when the file is open for
  // writing, belongs to another user, or is on a file system without reliable leases: network and stacked file
  // systems.
  static Result<LeasedFile> hold(int descriptor, std::size_t bytes) noexcept;
  LeasedFile(LeasedFile&& other) noexcept
      : lease_(std::move(other.lease_)), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  LeasedFile& operator=(LeasedFile&&) = delete;
  ~LeasedFile();

  // Faults in a part of the file and returns its address, to be read within seconds. Null when it must not be
  // read: a writer is waiting, or the disk failed.
  // REQUIRES: the range lies inside the held bytes.
  const std::byte* touch(std::uint64_t offset, std::size_t bytes) const noexcept;
  // Drops the pages of a range that is no longer needed, so that each thread pays for its own part instead of
  // one munmap paying for all. Pages that are only partly in the range are kept: another thread may be reading
  // them. REQUIRES: the range was touched.
  void drop_pages(std::uint64_t offset, std::size_t bytes) const noexcept;

 private:
  explicit LeasedFile(Descriptor lease) noexcept : lease_(std::move(lease)) {}

  Descriptor lease_;  // a separate open file description, which holds the lease
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace berth::internal::os

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// A file that nobody can cut or write while it is held, so that its mapped bytes can be touched without the risk of a signal. The kernel keeps
// whoever opens it for writing, or cuts it by its name, waiting (a lease, see F_SETLEASE in fcntl(2)), until the file is let go or
// /proc/sys/fs/lease-break-time is over: 45 seconds, unless an administrator says otherwise. Renaming and removing it are not held up.
namespace berth::internal::os {

class StillFile {
 public:
  // The first `bytes` of an open file. `unsupported` where somebody has it open for writing, it belongs to another user, or its file system
  // has no leases, or none that count everywhere: those of networks, and those laid over others.
  static Result<StillFile> hold(int descriptor, std::size_t bytes) noexcept;
  StillFile(StillFile&& other) noexcept
      : lease_(std::move(other.lease_)), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  StillFile& operator=(StillFile&&) = delete;
  ~StillFile();

  // Part of it, in memory, to be touched at once: within seconds. Null when it must not be: a writer is waiting, or the disk does not give the bytes.
  // REQUIRES: it lies inside what is held.
  const std::byte* touch(std::uint64_t offset, std::size_t bytes) const noexcept;
  // What was touched is not needed again. Left alone, all of it goes with the mapping, in one thread while the others wait; so each lets go of
  // its own. Pages that reach out of the range stay: a neighbour may be at work in them. REQUIRES: it was touched.
  void let_go(std::uint64_t offset, std::size_t bytes) const noexcept;

 private:
  explicit StillFile(Descriptor lease) noexcept : lease_(std::move(lease)) {}

  Descriptor lease_;  // a description of its own: the lease goes with it
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace berth::internal::os

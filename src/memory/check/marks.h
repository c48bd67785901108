// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "berth/device/backend.h"
#include "berth/memory/check.h"
#include "memory/check/ledger.h"
#include "os/process/fork.h"

// The bytes that the check adaptor writes into memory to detect stray writes: a canary behind each block, and
// poison in a freed one. Memory that the host cannot access is written and read through its backend.
//
// Pending work in a block's stream may use the memory. So allocation writes in stream order, unless the stream
// is idle; and a free writes or reads only if the stream is idle. `held` says that the device must not be
// called: then memory that only its backend can access is not touched, and no stream is queried. REQUIRES, of
// each entry: the caller owns it exclusively.
namespace berth::internal::memory {

class Marks {
 public:
  Marks(Backend& backend, std::size_t canary_bytes) noexcept;

  // The size to request from upstream: the block, the canary, and the rounding behind it. nullopt when that
  // overflows.
  std::optional<std::size_t> with_canary(const Request& request) const noexcept;

  Status clear(LedgerEntry& entry, void* data, std::size_t bytes, bool held) const noexcept;
  void add_canary(LedgerEntry& entry, const Block& block, bool held) const noexcept;
  void poison(LedgerEntry& entry, bool held) const noexcept;

  // The offset of the first changed byte from the block's start; nullopt when none was changed, or it cannot be
  // determined (yet).
  std::optional<std::size_t> change_of_canary(LedgerEntry& entry, bool held) const noexcept;
  std::optional<std::size_t> change_of_poison(LedgerEntry& entry, bool held) const noexcept;

  // Whether all the work in the block's stream is done; false if unknown.
  static bool is_idle(const LedgerEntry& entry, bool held) noexcept;

  // Waits for the writes that were enqueued here. REQUIRES: the device is not held.
  static void finish(const LedgerEntry& entry) noexcept;

 private:
  bool can_touch(bool held) const noexcept;
  Status write(LedgerEntry& entry, void* target, std::size_t bytes, unsigned char value, bool held) const noexcept;
  Status write_now(void* target, std::size_t bytes, unsigned char value) const noexcept;
  Status write_in_order(void* target, std::size_t bytes, unsigned char value, StreamRef stream) const noexcept;
  std::optional<std::size_t> find_other(const void* source, std::size_t bytes, unsigned char value) const noexcept;

  Backend& backend_;
  const std::size_t canary_bytes_;
  const bool host_access_;
  const os::Origin origin_;
};

}  // namespace berth::internal::memory

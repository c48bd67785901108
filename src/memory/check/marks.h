// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "berth/device/backend.h"
#include "berth/memory/check.h"
#include "memory/check/ledger.h"

// The bytes that the check adaptor writes into memory, to see later who wrote over them: a canary behind each block, and poison in a freed
// one. Where the host may not touch the memory, its backend writes and reads.
//
// Work in a block's stream may still use the memory. So what is written on the way in is written in the stream's order, unless the stream is
// idle; and on the way out nothing is written or read unless it is. `held` says that the device is to be left alone: then memory that only
// its backend can reach is not touched, and no stream is asked. REQUIRES, of each entry: the caller has it alone.
namespace berth::internal::memory {

class Marks {
 public:
  Marks(Backend& backend, std::size_t canary_bytes) noexcept;

  // How much to ask upstream for: the block, the canary, and what rounding leaves behind it. Nothing when that does not fit.
  std::optional<std::size_t> with_canary(const Request& request) const noexcept;

  Status clear(LedgerEntry& entry, void* data, std::size_t bytes, bool held) const noexcept;
  void add_canary(LedgerEntry& entry, const Block& block, bool held) const noexcept;
  void poison(LedgerEntry& entry, bool held) const noexcept;

  // Where the first byte was changed, from the block's start; nothing when none was, or it cannot be told (yet).
  std::optional<std::size_t> change_of_canary(LedgerEntry& entry, bool held) const noexcept;
  std::optional<std::size_t> change_of_poison(LedgerEntry& entry, bool held) const noexcept;

  // Whether all the work in the block's stream is done. What cannot be known is not.
  static bool is_idle(const LedgerEntry& entry, bool held) noexcept;

  // Waits for what was put into the block's stream here. REQUIRES: the device is not held.
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
  const std::uint64_t generation_;
};

}  // namespace berth::internal::memory

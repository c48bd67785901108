// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "berth/base/device_key.h"
#include "berth/export.h"
#include "berth/record/site.h"
#include "berth/record/tag.h"

// Misuse: mistakes in calls that cannot throw, such as freeing a block twice. Such a call changes nothing, is counted, and is
// reported to one handler: by default on standard error. With BERTH_CHECK=abort the process aborts after the report.
//
// Some mistakes are found, and some sites known, in checked mode only: see memory/check.h.
namespace berth {

enum class MisuseKind : std::uint8_t {
  double_free,    // the block was freed before
  foreign_free,   // the block, or the address, is not one this allocator handed out
  size_mismatch,  // the block says another size than the one allocated
  // With the check of streams (memory/race_detector.h). What was being done goes on.
  unordered_streams,  // two streams touch the block, or one touches it and it is freed, and nothing orders them
  // In checked mode. The first two are found late, and what was being done goes on.
  overflow,        // someone wrote behind the block's end
  use_after_free,  // someone wrote to the block after it was freed
  reentrancy,      // the allocator was called while the same thread was inside it, as from a signal handler
};
BERTH_EXPORT std::string_view to_string(MisuseKind kind) noexcept;

struct Misuse {
  MisuseKind kind;
  std::string_view allocator;  // its name
  DeviceKey device;
  const void* address = nullptr;
  std::size_t bytes = 0;
  Tag tag = {};
  std::uint64_t stream_id = 0;        // unordered_streams: of the copy or the free that was found; 0: no stream
  std::uint64_t other_stream_id = 0;  // and the one that touched it before
  std::size_t offset = 0;             // of the first byte found changed, from the block's start: overflow and use_after_free
  CallSite allocated = {};            // where the block was
  CallSite freed = {};                // where it was first
  CallSite here = {};                 // the call that was refused
};

// Called on the thread that made the mistake, or found it, with no lock held.
using MisuseHandler = void (*)(const Misuse& misuse) noexcept;

// Replaces the handler and returns the one before; nullptr brings back the default.
BERTH_EXPORT MisuseHandler set_misuse_handler(MisuseHandler handler) noexcept;

// How many were reported in this process.
BERTH_EXPORT std::uint64_t misuse_count() noexcept;

// Counts and reports; for allocators, also those of third parties.
BERTH_EXPORT void report_misuse(const Misuse& misuse) noexcept;

}  // namespace berth

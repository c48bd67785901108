// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "berth/base/device_key.h"
#include "berth/export.h"
#include "berth/record/site.h"
#include "berth/record/tag.h"

// Misuse: mistakes in calls that cannot throw, such as freeing a block twice. Such a call has no effect, is
// counted, and is reported to one handler, which by default writes to standard error. With BERTH_CHECK=abort
// the process aborts after the report.
//
// Some mistakes are found, and some call sites are known, in checked mode only: see memory/check.h. Any thread.
namespace berth {

enum class MisuseKind : std::uint8_t {
  double_free,    // the block was freed before
  foreign_free,   // the block, or the address, is not one this allocator handed out
  size_mismatch,  // the block's size is not the one that was allocated
  // Found by race detection (memory/race_detector.h). The operation proceeds.
  unordered_streams,  // two uses of the block, or a use and its free, are on streams that nothing orders
  // Found in checked mode. The first two are found after the fact, and the operation proceeds.
  overflow,        // bytes past the block's end were written
  use_after_free,  // the block was written after it was freed
  reentrancy,      // a thread that was inside the allocator called it again, as from a signal handler
};
BERTH_EXPORT std::string_view to_string(MisuseKind kind) noexcept;

struct Misuse {
  MisuseKind kind;
  std::string_view allocator;  // its name
  DeviceKey device;
  const void* address = nullptr;
  std::size_t bytes = 0;
  Tag tag = {};
  std::uint64_t stream_id = 0;        // unordered_streams: of the reported copy or free; 0: no stream
  std::uint64_t other_stream_id = 0;  // unordered_streams: of the earlier use
  std::size_t offset = 0;             // overflow, use_after_free: of the first changed byte in the block
  CallSite allocated = {};            // where the block was allocated
  CallSite freed = {};                // where it was first freed
  CallSite here = {};                 // the call that was rejected
};

// Called on the thread that made or detected the mistake, with no lock held.
using MisuseHandler = void (*)(const Misuse& misuse) noexcept;

// Replaces the handler and returns the previous one; nullptr restores the default.
BERTH_EXPORT MisuseHandler set_misuse_handler(MisuseHandler handler) noexcept;

// The number of misuses reported in this process.
BERTH_EXPORT std::uint64_t misuse_count() noexcept;

// Counts and reports a misuse. For allocators, including those of third parties.
BERTH_EXPORT void report_misuse(const Misuse& misuse) noexcept;

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

// Host memory on pages of its own, with a page behind it that nobody may touch:
//
//     range                    data          data + bytes   range + pages_bytes
//     | nothing                | the block   | slack        | the guard page |
//
// The slack is what the alignment costs. Plain values: whoever has one gives it back.
namespace berth::internal::memory {

struct GuardedPages {
  void* range = nullptr;        // nullptr: there are none
  std::size_t pages_bytes = 0;  // that may be touched
  void* data = nullptr;

  explicit operator bool() const noexcept { return range != nullptr; }
  std::byte* end() const noexcept { return static_cast<std::byte*>(range) + pages_bytes; }
};

// Nothing when the system refuses. The pages hold zeros. REQUIRES: bytes > 0, alignment is a power of two.
std::optional<GuardedPages> make_guarded(std::size_t bytes, std::size_t alignment) noexcept;

// From now on every touch faults, and the memory is back with the system. False, with nothing changed, when that is refused.
bool close_guarded(const GuardedPages& pages) noexcept;

void release_guarded(const GuardedPages& pages) noexcept;

}  // namespace berth::internal::memory

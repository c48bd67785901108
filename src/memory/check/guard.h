// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

// Host memory on pages of its own, with an inaccessible guard page behind it:
//
//     range                    data          data + bytes   range + pages_bytes
//     | nothing                | the block   | slack        | the guard page |
//
// The slack is due to the alignment. Plain values, which their owner releases. Any thread.
namespace berth::internal::memory {

struct GuardedPages {
  void* range = nullptr;        // nullptr: none
  std::size_t pages_bytes = 0;  // accessible
  void* data = nullptr;

  explicit operator bool() const noexcept { return range != nullptr; }
  std::byte* end() const noexcept { return static_cast<std::byte*>(range) + pages_bytes; }
};

// Returns nullopt when the system refuses. The pages hold zeros. REQUIRES: bytes > 0, alignment is a power of
// two.
std::optional<GuardedPages> make_guarded(std::size_t bytes, std::size_t alignment) noexcept;

// Decommits the pages: from then on every access faults. Returns false, with nothing changed, when the system
// refuses.
bool close_guarded(const GuardedPages& pages) noexcept;

void release_guarded(const GuardedPages& pages) noexcept;

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#include "memory/check/guard.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "os/memory/memory.h"

namespace berth::internal::memory {

std::optional<GuardedPages> make_guarded(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t page = os::page_bytes();
  const auto pages_bytes = try_align_up(bytes, page);
  const auto range_bytes = pages_bytes ? try_add(*pages_bytes, page) : std::nullopt;
  if (!range_bytes) return std::nullopt;
  const Result<void*> range = os::reserve(*range_bytes, std::max(alignment, page));
  if (!range) return std::nullopt;
  GuardedPages made{.range = *range, .pages_bytes = *pages_bytes};
  if (!os::commit(made.range, made.pages_bytes)) {
    release_guarded(made);
    return std::nullopt;
  }
  // With an alignment of more than a page, the range has it, and the block begins there.
  made.data = made.end() - *try_align_up(bytes, std::min(alignment, page));
  if (alignment > page) made.data = made.range;
  return made;
}

bool close_guarded(const GuardedPages& pages) noexcept { return os::close_off(pages.range, pages.pages_bytes).ok(); }

void release_guarded(const GuardedPages& pages) noexcept {
  // If the system refuses to unmap the range, it leaks; nothing more can be done.
  (void)os::release(pages.range, pages.pages_bytes + os::page_bytes()).ok();
}

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/space/page_view.h"

// Which addresses a block gets that no cached extent holds. Pure functions, without side effects.
namespace berth::internal::memory {

// Free addresses for a block, with memory under some of them.
//
//     cached | bare        | cached, of the same stream | bare ...
//        [ the window: begin ... begin + bytes )          missing: what is bare in it, in whole pages
struct PageWindow {
  std::size_t begin = 0;
  std::size_t bytes = 0;
  std::size_t missing = SIZE_MAX;
  const PoolExtent* first = nullptr;  // of the free extents that it touches; nullptr: there is no window
  std::size_t extents = 0;            // how many it touches
};

// Of the runs of free extents that a stream may use, the window where the least memory is missing; of equal
// ones the lowest.
PageWindow find_window(const PageView& view, PagePart part, std::size_t bytes, std::size_t alignment, std::uint32_t stream) noexcept;

// The window of so many bytes just behind a live extent.
PageWindow window_behind(const PoolExtent& extent, std::size_t bytes, std::uint32_t stream) noexcept;

// How much is committed beyond a window, where each piece costs.
std::size_t plan_ahead(const PageView& view, const PageWindow& window) noexcept;

}  // namespace berth::internal::memory

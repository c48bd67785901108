// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/space/page_view.h"

// Which memory is decommitted next. Pure functions: the caller asks, decommits without the pool's mutex, and
// asks again with a new view. Only memory that no pending work can touch is decommitted.
namespace berth::internal::memory {

// One trim: what was asked for, and how far it has come.
struct Trim {
  std::size_t keep = 0;               // until at most so many bytes are cached
  std::size_t grain = 0;              // in multiples of this; where memory is in pieces, piece by piece
  std::size_t most_spans = SIZE_MAX;  // and so many times at most,
  std::size_t most_looks = SIZE_MAX;  // with so many extents looked at
  PagePart part = PagePart::large;    // which part it has come to
  std::size_t below = SIZE_MAX;       // what is above has been looked at: the mutex is released in between
};

// From the highest address down, the large blocks' part first; empty when all is done.
PageSpan next_to_trim(const PageView& view, Trim& trim) noexcept;
// The device has refused the last span. Returns whether to continue: pieces of the other part may still be
// decommitted.
bool goes_on_after_refusal(const PageView& view, Trim& trim) noexcept;

// The pages around a range that was just freed; `rest` is the part of it that has not been looked at. Empty
// when all is done, and where it is in use after all.
PageSpan next_to_trim_around(const PageView& view, PageSpan& rest) noexcept;

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/space/free_spans.h"
#include "memory/space/page_view.h"

// Which cached memory is moved elsewhere. Pure: what an earlier search has found is given as taken, and not
// cut out.
namespace berth::internal::memory {

struct SourceQuery {
  std::size_t most = 0;      // bytes
  bool edges = false;        // of pages that are partly live, in units of the device; else whole pages
  bool longer = false;       // a piece may be longer than `most`
  bool all = false;          // every piece is looked at, if need be: before a request is refused
  std::uint32_t stream = 0;  // what was freed on that stream; 0: what no pending work can touch
};

// What no pending work can touch, in whole units of the device, longest spans first: all of it is found, by few
// moves. For a device that does not commit in pieces.
class LongestSources {
 public:
  // REQUIRES: the trees stay as they are.
  explicit LongestSources(const PageView& view) noexcept;

  // The next one, or its last `most` bytes; empty when the longest ones are used up.
  PageSpan next(std::size_t most) noexcept;

 private:
  std::array<PageSpan, TakenSpans::kMost> spans_;  // longest first
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::size_t unit_;
};

// Whole pages, or edges, from the highest address down. On a device that commits in pieces a whole piece: of
// those that are long enough the shortest, else the longest. An empty span when there is none.
PageSpan find_source(const PageView& view, const TakenSpans& taken, const SourceQuery& query) noexcept;

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  std::uint32_t stream = 0;  // what was freed on that stream; 0: what no pending work can touch
};

// Whole pages, or edges, from the highest address down. On a device that commits in pieces a whole piece: of
// those that are long enough the shortest, else the longest. An empty span when there is none.
PageSpan find_source(const PageView& view, const TakenSpans& taken, const SourceQuery& query) noexcept;

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/space/extents.h"
#include "memory/space/page_span.h"
#include "memory/space/piece_borders.h"

// A read-only view of all that decisions about pages depend on: page_window.h, page_plan.h and page_trim.h are
// functions of it. The pool's mutex is held for as long as a view is used.
namespace berth::internal::memory {

// What a block's address and size are multiples of.
inline constexpr std::size_t kPageGrain = 4096;

// What never changes: the device's properties that matter, and the pool's settings.
struct PageRules {
  std::size_t page_bytes = 0;     // moved and committed at a time: the unit, or a huge page where it has some
  std::size_t unit_bytes = 0;     // the device's granularity
  std::size_t piece_bytes = 0;    // BackendProperties::piece_bytes
  bool host_access = false;       // of Abilities
  bool move_in_use = false;       // of Abilities
  bool fixed_pages = false;       // pages stay under their addresses until they are decommitted
  double page_bound = 1.010;      // whole pages move when committed memory would exceed this much of the peak
  double edge_bound = 1.014;      // and edges, at a limited rate, when it would exceed this,
  double churn_bound = 1.25;      // the same while requests cost too many moves, where these cost by their number
  double scattered_bound = 1.05;  // and what is free anywhere, when it would exceed this
  double excess_bound = 1.02;     // what is committed beyond this is made good by cuts (piece_cut.h)

  bool in_pieces() const noexcept { return piece_bytes != 0; }
  // Whether pieces cost by their number. Those of host memory cost by their bytes.
  bool pays_by_the_piece() const noexcept { return in_pieces() && !host_access; }
};

// The range has a part for slabs and, above it, one for large blocks.
enum class PagePart : std::uint8_t { slabs, large };

struct PageView {
  PageRules rules;
  std::array<const Extents*, 2> parts{};  // by PagePart
  const PieceBorders* borders = nullptr;  // right only where memory is committed in pieces
  std::uintptr_t base = 0;                // the address of offset 0
  std::size_t split = 0;                  // where the part for large blocks begins

  std::size_t committed = 0;
  std::size_t promised = 0;  // requested from the device, or from the lender
  std::size_t live = 0;
  std::size_t peak_live = 0;
  std::size_t room = SIZE_MAX;  // what may still be claimed from the budgets
  std::size_t handed_out = 0;   // all bytes ever handed out
  std::size_t moved_edges = 0;  // all bytes of edges ever moved
  bool cuts_matter = false;     // PageAccounts, both
  bool churns = false;
  std::size_t echo_room = 0;  // how many more extents can become echoes

  std::size_t cached() const noexcept { return committed - live; }
  const Extents& part(PagePart which) const noexcept { return *parts[static_cast<std::size_t>(which)]; }
  const Extents& part_of(std::size_t offset) const noexcept { return part(offset < split ? PagePart::slabs : PagePart::large); }
};

}  // namespace berth::internal::memory

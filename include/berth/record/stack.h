// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "berth/export.h"
#include "berth/record/site.h"

// Call stacks, for whoever wants to know more of a call than its site (record/site.h): the return addresses, interned like sites, so that what
// is kept for each block is four bytes. Addresses become names when they are printed, and not before.
namespace berth {

// An interned stack. 0 is "none".
struct StackId {
  std::uint32_t value = 0;
  friend constexpr bool operator==(StackId, StackId) = default;
};

// The calling thread's stack, `depth` frames of it at most (no more than CallSite::kMostFrames). Those of berth itself at its inner end are left
// out when it is printed, where they can be told by their names; else a few more are printed than were asked for.
// A depth of 0 walks nothing and gives "none". Never fails: past 65,535 different stacks, or without a heap, the answer is "none".
BERTH_EXPORT StackId capture_stack(std::size_t depth) noexcept;

// The frames of it, innermost first, with no site.
BERTH_EXPORT CallSite call_site_of(StackId id) noexcept;

// "libmodel.so+0x4c1d (grow) < a.out+0x1f20 (main)"; empty for none.
BERTH_EXPORT std::string to_string(StackId id);

}  // namespace berth

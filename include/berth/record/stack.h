// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "berth/export.h"
#include "berth/record/site.h"

// Call stacks, for callers that need more than a call's site (record/site.h): the return addresses, interned
// like sites, so that each block keeps four bytes. Addresses are symbolized only when they are printed.
namespace berth {

// An interned stack. 0 is "none".
struct StackId {
  std::uint32_t value = 0;
  friend constexpr bool operator==(StackId, StackId) = default;
};

// The calling thread's stack, at most `depth` frames of it (and at most CallSite::kMostFrames). Printing omits
// berth's own innermost frames where their symbols are known; else a few more frames are printed than were
// asked for. A depth of 0 walks nothing and returns "none". Never fails: past 65,535 different stacks, or when
// the heap is exhausted, it returns "none".
BERTH_EXPORT StackId capture_stack(std::size_t depth) noexcept;

// The frames of a stack, innermost first, without a site.
BERTH_EXPORT CallSite call_site_of(StackId id) noexcept;

// "libmodel.so+0x4c1d (grow) < a.out+0x1f20 (main)"; empty for none.
BERTH_EXPORT std::string to_string(StackId id);

}  // namespace berth

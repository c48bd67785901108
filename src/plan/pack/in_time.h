// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/pack/packer.h"

// Sweeps over time as a program would run: frees what ends and allocates what begins, the largest first, in the
// free range that suits best. O(n log n), however much is live at once.
namespace berth::internal::plan {

enum class WalkDirection : std::uint8_t {
  forwards,
  backwards,
  outwards,  // from the step of the peak in both directions: what is live there is packed without gaps, longest
             // lifetimes lowest
};
enum class Choice : std::uint8_t {
  smallest,  // the smallest range that is large enough
  together,  // among the few smallest, one next to a buffer that ends together with this one, so that the two
             // coalesce when freed
};

PackAnswer pack_in_time(const PackTask& task, WalkDirection walk, Choice choice);

}  // namespace berth::internal::plan

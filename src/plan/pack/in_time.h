// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/pack/packer.h"

// Walks through time as a program would run, frees what ends and places what begins, the largest first, into the free range that suits
// best. O(n log n), however much is live at once.
namespace berth::internal::plan {

enum class Walk : std::uint8_t {
  forwards,
  backwards,
  outwards,  // from the step at which the most is live, in both directions: what is live there lies without gaps, the longest lives below
};
enum class Choice : std::uint8_t {
  smallest,  // the smallest range that is large enough
  together,  // among the few smallest, one beside a buffer that ends with this one, so that they leave one range together
};

PackAnswer pack_in_time(const PackTask& task, Walk walk, Choice choice);

}  // namespace berth::internal::plan

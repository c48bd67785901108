// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/pack/packer.h"

// Places buffers one after another in a given order, each into a gap between those that are placed and live with it: the lowest that is
// large enough (first fit), or the smallest (best fit).
namespace berth::internal::plan {

enum class Fit : std::uint8_t { first, best };

// `order` has every index of the part's buffers once, those of fixed ones first.
PackAnswer pack_in_order(const PackTask& task, const std::vector<std::uint32_t>& order, Fit fit);

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/pack/packer.h"

// Packs buffers greedily in a given order, each into a gap between the packed buffers whose lifetimes overlap
// its own: the lowest gap that is large enough (first fit), or the smallest (best fit).
namespace berth::internal::plan {

enum class Fit : std::uint8_t { first, best };

// `order` is a permutation of the part's buffers, the fixed ones first.
PackAnswer pack_in_order(const PackTask& task, const std::vector<std::uint32_t>& order, Fit fit);

}  // namespace berth::internal::plan

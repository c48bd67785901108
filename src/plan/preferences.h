// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "plan/reuse.h"

namespace berth::internal::plan {

// Moves buffers to their preferred offsets where these are free and below the peak of their device. Returns the
// offsets.
std::vector<std::size_t> apply_preferences(const std::vector<OffsetPreference>& preferences, const std::vector<PackBuffer>& buffers,
                                           std::vector<std::size_t> offsets, const std::vector<std::size_t>& peaks);

}  // namespace berth::internal::plan

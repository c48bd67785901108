// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/lives.h"
#include "plan/reuse.h"

namespace berth::internal::plan {

bool has_locations(const PlanTables& tables) noexcept;

// A packing, not yet expanded to a location for every value.
struct Packed {
  PlanTables tables = {};  // without locations
  std::vector<std::size_t> offsets = {};
  std::vector<std::uint32_t> slot_of = {};
  std::size_t total_bytes = 0;

  std::vector<std::size_t> peaks() const;  // of each device

  // How large the arenas are, and so whether that is optimal.
  void set_peaks(const std::vector<std::size_t>& peaks);
};

std::vector<ValueLocation> locations_of(const Packed& packed, const std::vector<ValueInBuffer>& values, const std::vector<Life>& lives);

}  // namespace berth::internal::plan

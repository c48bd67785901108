// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/pack/packer.h"
#include "plan/parallel/conflicts.h"
#include "plan/slots.h"

// Packs buffers whose conflicts need not be those of intervals.
namespace berth::internal::plan::parallel {

struct PackTogether {
  const std::vector<PackBuffer>& buffers;
  const Conflicts& conflicts;             // of the device's buffers
  const std::vector<std::size_t>& hints;  // offsets of another packing, one for each buffer, as an order to try; empty: none
  std::size_t enough;                     // a packing this low is good enough
  const Patience& patience;
};

// Offsets of all buffers, in their order; those of other devices, and of buffers without bytes, are 0. First fit in
// several orders, the best of them improved by moving forward what ends highest. Nothing when fixed buffers clash.
std::optional<Packing> pack_offsets(const PackTogether& task);

// Slots by best fit, in the order of first uses; a slot of the same colour is preferred. REQUIRES: no buffer is fixed,
// and there are conflicts of each device.
SlotsPacking pack_slots_apart(const SlotsTask& task, const std::vector<Conflicts>& conflicts);

}  // namespace berth::internal::plan::parallel

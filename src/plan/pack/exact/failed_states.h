// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/pack/exact/item.h"

// A table of no-goods: states from which the search has failed. A state is, for every buffer that is not placed
// yet, its lowest possible offset and whether it rests there. It contains neither the order in which the others
// were placed nor the restart, so a failed state is pruned wherever it comes up again, as long as the capacity
// does not grow.
namespace berth::internal::plan::pack::exact {

class FailedStates {
 public:
  explicit FailedStates(std::size_t buffers);

  // Two independent hashes: one picks the entry, the other is stored there. A lookup has a false match with a
  // probability below 2⁻⁸⁰.
  struct Key {
    std::uint64_t slot = 0;
    std::uint64_t check = 0;
  };
  Key key_of(std::span<const Item> items) const noexcept;

  bool has(const Key& key) const noexcept { return slots_[key.slot % slots_.size()] == key.check; }
  void add(const Key& key) noexcept { slots_[key.slot % slots_.size()] = key.check; }

 private:
  struct Salt {
    std::uint64_t slot;
    std::uint64_t check;
  };

  std::vector<Salt> salts_;           // one for each buffer
  std::vector<std::uint64_t> slots_;  // direct-mapped: a later state replaces an earlier one
};

}  // namespace berth::internal::plan::pack::exact

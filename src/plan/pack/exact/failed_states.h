// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/pack/exact/item.h"

// States of which the search knows that they lead nowhere. A state says of every buffer that is not placed yet how low it may lie and whether
// it rests there; it does not say in which order the others were placed, nor by which restart, so that what failed once is passed over
// wherever it comes up again, as long as the capacity does not grow.
namespace berth::internal::plan::pack::exact {

class FailedStates {
 public:
  explicit FailedStates(std::size_t buffers);

  // Two independent hashes: one finds the slot, the other is kept there. A false match has odds below one in 2⁸⁰ for each look.
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
  std::vector<std::uint64_t> slots_;  // what comes later takes the place of what was there
};

}  // namespace berth::internal::plan::pack::exact

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/pack/parts.h"
#include "plan/pack/strategies.h"
#include "plan/reuse.h"

// Packs the buffers of every device by one strategy after another, and keeps for each part of the timeline the best that was found.
namespace berth::internal::plan {

class Portfolio {
 public:
  Portfolio(const std::vector<PackBuffer>& buffers, std::size_t devices);

  // What no packing can go below, for each device.
  std::size_t lower_bound_bytes(std::size_t device) const noexcept { return devices_[device].bound; }

  // Whether two fixed buffers overlap: then there is no packing at all.
  bool fixed_clash() const;

  // Every buffer in a place of its own, as far as what is fixed allows: where the others start from. REQUIRES: nothing clashes.
  void start_without_reuse();

  // What a strategy is run with.
  struct Effort {
    const Patience& patience;
    bool to_the_end = false;          // on all parts, and not stopped above the best
    std::size_t capacity = SIZE_MAX;  // of each device; when one is given, nobody wants less
    std::uint64_t seed = 0;
    std::size_t threads = 1;
  };
  // Runs a strategy on every part that can still be lowered. True when the total is lower than before.
  bool run(const OffsetStrategy& strategy, const Effort& effort);

  // What no packing can go below, by search; at least the lower bound. When it is more, what lives in these steps shows it.
  std::size_t proved_bytes(std::size_t device) const noexcept { return devices_[device].proved; }
  NodeRange proved_steps(std::size_t device) const noexcept { return devices_[device].proved_steps; }

  bool at_bound() const;  // or at what is proved
  std::size_t peak_bytes(std::size_t device) const;
  std::size_t used_bytes(std::size_t device) const;  // where the highest of its buffers ends
  std::size_t total_bytes() const;
  std::vector<std::size_t> offsets() const;  // of each buffer

  // The buffers that were given, and all packings forgotten: bounds, proofs and attempts are left. Of those without bytes the times are lost.
  std::vector<PackBuffer> take_buffers();

  void add_attempt(PlanAttempt attempt) { attempts_.push_back(std::move(attempt)); }
  const std::vector<PlanAttempt>& attempts() const noexcept { return attempts_; }

 private:
  struct PartState {
    CutPart cut;
    NodeRange steps = {};
    Packing best = {};
  };
  struct DeviceState {
    std::vector<PartState> parts = {};
    std::size_t bound = 0;
    std::size_t proved = 0;  // at least the bound
    NodeRange proved_steps = {};
  };
  bool can_be_lowered(const DeviceState& device, const PartState& state) const noexcept { return state.best.peak_bytes > device.proved; }

  std::size_t count_lowerable() const;

  const std::size_t count_;
  std::vector<DeviceState> devices_;
  std::vector<PlanAttempt> attempts_;
};

}  // namespace berth::internal::plan

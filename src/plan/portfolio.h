// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/pack/parts.h"
#include "plan/pack/strategies.h"
#include "plan/reuse.h"

// Packs the buffers of every device by one strategy after another, and keeps the best packing of each part of
// the timeline. Not synchronized: one planner owns it.
namespace berth::internal::plan {

class Portfolio {
 public:
  Portfolio(const std::vector<PackBuffer>& buffers, std::size_t devices);

  // A lower bound of every packing, for each device.
  std::size_t lower_bound_bytes(std::size_t device) const noexcept { return devices_[device].bound; }

  // Whether two fixed buffers overlap: then no packing exists.
  bool fixed_clash() const;

  // The trivial packing, without reuse over time except among fixed buffers: the upper bound that strategies
  // start from. REQUIRES: no fixed buffers clash.
  void start_without_reuse();

  // How hard a strategy tries.
  struct Effort {
    const Patience& patience;
    bool to_the_end = false;          // run on all parts, and do not stop above the best
    std::size_t capacity = SIZE_MAX;  // of each device; when given, a packing within it is good enough
    std::uint64_t seed = 0;
    std::size_t threads = 1;
  };
  // Runs a strategy on every part that can still be lowered. Returns whether the total fell.
  bool run(const OffsetStrategy& strategy, const Effort& effort);

  // The lower bound that a search has proved; at least the lower bound above. When it is more, the buffers that
  // are live in these steps prove it.
  std::size_t proved_bytes(std::size_t device) const noexcept { return devices_[device].proved; }
  NodeRange proved_steps(std::size_t device) const noexcept { return devices_[device].proved_steps; }

  bool at_bound() const;  // or at the proved bound
  std::size_t peak_bytes(std::size_t device) const;
  std::size_t used_bytes(std::size_t device) const;  // the end of its highest buffer
  std::size_t total_bytes() const;
  std::vector<std::size_t> offsets() const;  // of each buffer

  // Returns the buffers and drops all packings; bounds, proofs and attempts stay. Empty buffers lose their
  // lifetimes.
  std::vector<PackBuffer> take_buffers();

  void add_attempt(PlanAttempt attempt) { attempts_.push_back(std::move(attempt)); }
  const std::vector<PlanAttempt>& attempts() const noexcept { return attempts_; }

 private:
  struct PartState {
    CutPart cut;
    NodeRange steps = {};
    Packing best = {};
    std::array<bool, 4> gave_up = {};  // by Family: too much was live
  };
  struct DeviceState {
    std::vector<PartState> parts = {};
    std::size_t bound = 0;
    std::size_t proved = 0;  // at least the bound
    NodeRange proved_steps = {};
  };
  bool can_be_lowered(const DeviceState& device, const PartState& state) const noexcept { return state.best.peak_bytes > device.proved; }

  PackAnswer pack(const OffsetStrategy& strategy, const Effort& effort, const DeviceState& device, PartState& state, std::size_t left,
                  std::size_t sharing) const;
  std::size_t count_lowerable() const;

  const std::size_t count_;
  std::vector<DeviceState> devices_;
  std::vector<PlanAttempt> attempts_;
};

}  // namespace berth::internal::plan

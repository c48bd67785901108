// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/reorder/model.h"

// Simulates units one after another, forwards or backwards in time, and counts the live bytes.
namespace berth::internal::plan {

// The memory cost of running a unit next.
struct StepCost {
  std::size_t need_bytes = 0;  // live while it runs
  std::size_t live_bytes = 0;  // live afterwards
};

// Forwards: a storage becomes live with the unit that makes it, and dies after its last reader.
class ForwardWalk {
 public:
  explicit ForwardWalk(const OrderModel& model);

  std::size_t live_bytes() const noexcept { return live_; }
  StepCost preview(UnitId unit) const;

  // Calls changed(other) for units whose cost may have changed.
  template <class Changed>
  StepCost run(UnitId unit, Changed changed) {
    const StepCost cost = preview(unit);
    live_ = cost.live_bytes;
    for (const std::uint32_t source : model_->sources[unit]) {
      if (has_run_[source]) continue;
      has_run_[source] = true;
      for (const UnitId other : model_->source_readers[source]) changed(other);
    }
    done_[unit] = true;
    for (const StorageId s : model_->reads[unit])
      if (--left_[s] == 1) changed(last_reader(s));
    return cost;
  }
  StepCost run(UnitId unit) {
    return run(unit, [](UnitId) {});
  }

 private:
  bool dies_with_next(StorageId s) const { return left_[s] == 1 && !model_->storages[s].survives; }
  UnitId last_reader(StorageId s) const;

  const OrderModel* model_;
  std::vector<std::uint32_t> left_;  // remaining readers of each storage
  std::vector<bool> done_;           // units
  std::vector<bool> has_run_;        // sources
  std::size_t live_ = 0;
};

// Backwards: a storage becomes live with its last reader, and dies with the unit that makes it.
class BackwardWalk {
 public:
  explicit BackwardWalk(const OrderModel& model);

  std::size_t live_bytes() const noexcept { return live_; }
  StepCost preview(UnitId unit) const;

  template <class Changed>
  StepCost run(UnitId unit, Changed changed) {
    const StepCost cost = preview(unit);
    live_ = cost.live_bytes;
    for (const StorageId s : model_->reads[unit]) {
      if (born_[s]) continue;
      born_[s] = true;
      for (const UnitId other : model_->readers[s]) changed(other);
    }
    for (const std::uint32_t source : model_->sources[unit])
      if (--source_left_[source] == 1)
        for (const UnitId other : model_->source_readers[source]) changed(other);
    return cost;
  }

 private:
  const OrderModel* model_;
  std::vector<bool> born_;                  // storages
  std::vector<std::uint32_t> source_left_;  // remaining readers of each source
  std::size_t live_ = 0;
};

// The peak of an order of all units.
std::size_t peak_of(const OrderModel& model, std::span<const UnitId> order);

// The live bytes while each unit of an order runs.
std::vector<std::size_t> needs_of(const OrderModel& model, std::span<const UnitId> order);

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#include "plan/reorder/walk.h"
#include "base/allowance.h"

#include <algorithm>

namespace berth::internal::plan {

namespace {

// The bytes of storages that a unit makes in place, in storages that die with it, by `ends(storage)`. Each is
// reused once.
template <class Ends>
std::size_t taken_bytes(const OrderModel& model, UnitId unit, Ends ends) {
  const std::span<const std::uint32_t> pairs = model.in_place[unit];
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    bool is_free = ends(pairs[i + 1]);
    for (std::size_t j = 0; j < i && is_free; j += 2) is_free = pairs[j] != pairs[i] && pairs[j + 1] != pairs[i + 1];
    if (is_free) bytes += model.storages[pairs[i]].bytes;
  }
  return bytes;
}

bool is_read_or_survives(const OrderModel& model, StorageId s) { return model.storages[s].survives || !model.readers[s].empty(); }

}  // namespace

ForwardWalk::ForwardWalk(const OrderModel& model)
    : model_(&model), left_(model.storages.size()), done_(model.units(), false), has_run_(model.source_of.size(), false) {
  for (StorageId s = 0; s < left_.size(); ++s) left_[s] = static_cast<std::uint32_t>(model.readers[s].size());
}

StepCost ForwardWalk::preview(UnitId unit) const {
  StepCost cost{live_, 0};
  for (const std::uint32_t source : model_->sources[unit])
    if (!has_run_[source])
      for (const StorageId s : model_->source_makes[source]) cost.need_bytes += model_->storages[s].bytes;
  std::size_t ended = 0;
  for (const StorageId s : model_->makes[unit]) {
    cost.need_bytes += model_->storages[s].bytes;
    if (!is_read_or_survives(*model_, s)) ended += model_->storages[s].bytes;
  }
  for (const StorageId s : model_->reads[unit])
    if (dies_with_next(s)) ended += model_->storages[s].bytes;
  cost.live_bytes = cost.need_bytes - ended;
  cost.need_bytes -= taken_bytes(*model_, unit, [&](StorageId s) { return dies_with_next(s); });
  cost.need_bytes = std::max(cost.need_bytes, cost.live_bytes);
  return cost;
}

UnitId ForwardWalk::last_reader(StorageId s) const {
  const auto readers = model_->readers[s];
  return *std::find_if(readers.begin(), readers.end(), [&](UnitId u) { return !done_[u]; });
}

BackwardWalk::BackwardWalk(const OrderModel& model)
    : model_(&model), born_(model.storages.size(), false), source_left_(model.source_of.size()) {
  for (std::uint32_t i = 0; i < source_left_.size(); ++i) source_left_[i] = static_cast<std::uint32_t>(model.source_readers[i].size());
  for (StorageId s = 0; s < born_.size(); ++s) {
    born_[s] = model.storages[s].survives;
    if (born_[s]) live_ += model.storages[s].bytes;
  }
}

StepCost BackwardWalk::preview(UnitId unit) const {
  StepCost cost{live_, 0};
  for (const StorageId s : model_->reads[unit])
    if (!born_[s]) cost.need_bytes += model_->storages[s].bytes;
  std::size_t ended = 0;
  for (const StorageId s : model_->makes[unit]) {
    if (!born_[s]) cost.need_bytes += model_->storages[s].bytes;  // no unit reads it
    ended += model_->storages[s].bytes;
  }
  for (const std::uint32_t source : model_->sources[unit])
    if (source_left_[source] == 1)
      for (const StorageId s : model_->source_makes[source]) ended += model_->storages[s].bytes;
  cost.live_bytes = cost.need_bytes - ended;
  cost.need_bytes -= taken_bytes(*model_, unit, [&](StorageId s) { return !born_[s]; });
  return cost;
}

std::size_t peak_of(const OrderModel& model, std::span<const UnitId> order) {
  ForwardWalk walk(model);
  std::size_t peak = 0;
  for (const UnitId unit : order) {
    base::checkpoint();
    peak = std::max(peak, walk.run(unit).need_bytes);
  }
  return peak;
}

std::vector<std::size_t> needs_of(const OrderModel& model, std::span<const UnitId> order) {
  ForwardWalk walk(model);
  std::vector<std::size_t> needs;
  needs.reserve(order.size());
  for (const UnitId unit : order) needs.push_back(walk.run(unit).need_bytes);
  return needs;
}

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#include "plan/reorder/improve.h"

#include <algorithm>

#include "plan/reorder/ranges.h"
#include "plan/reorder/walk.h"

namespace berth::internal::plan {

namespace {

constexpr std::size_t kMostWork = 40'000'000;      // states × units, per search
constexpr std::size_t kMostAllWork = 400'000'000;  // of all searches
constexpr std::size_t kMostStates = 20'000;
constexpr std::size_t kMostRounds = 400;  // searches in total
constexpr std::size_t kWindows[] = {12, 24, 48, 96, 192, 384};

class Improver {
 public:
  Improver(const OrderModel& model, std::vector<UnitId> order, const Patience& patience)
      : model_(model), patience_(patience), order_(std::move(order)), needs_(needs_of(model, order_)), floor_(least_need(model)) {}

  ImprovedOrder run() {
    bool is_least = false;
    while (!order_.empty() && !is_over()) {
      const auto peak_at = static_cast<std::size_t>(std::max_element(needs_.begin(), needs_.end()) - needs_.begin());
      is_least = needs_[peak_at] <= floor_;
      if (is_least) break;
      const OrderRange whole = range_around(peak_at);
      // A range as long as one that was given up is not tried again.
      const std::size_t length = whole.end - whole.begin;
      const Found found = length < too_long_ ? search(whole) : Found::gave_up;
      if (found == Found::gave_up) too_long_ = std::min(too_long_, length);
      is_least = found == Found::nothing;
      if (is_least) break;
      if (found == Found::gave_up && !search_windows(whole, peak_at)) break;
    }
    const std::size_t peak = needs_.empty() ? 0 : *std::max_element(needs_.begin(), needs_.end());
    return {std::move(order_), peak, is_least || peak <= floor_};
  }

 private:
  enum class Found : std::uint8_t { better, nothing, gave_up };

  bool is_over() const { return rounds_ >= kMostRounds || work_ >= kMostAllWork || patience_.over(); }

  OrderRange range_around(std::size_t position) const {
    for (const OrderRange& range : independent_ranges(model_, order_))
      if (position < range.end) return range;
    return {0, order_.size()};
  }

  Found search(const OrderRange& range) {
    const std::size_t length = range.end - range.begin;
    const std::size_t cost = length + model_.units() / 8 + 1;  // per state
    const std::size_t states = std::min(kMostStates, kMostWork / cost);
    if (length > kMostWork / kMostStates) return Found::gave_up;
    ++rounds_;
    const std::size_t peak = *std::max_element(needs_.begin(), needs_.end());
    std::size_t elsewhere = floor_;  // going below the peak elsewhere gains nothing
    for (std::size_t i = 0; i < needs_.size(); ++i)
      if ((i < range.begin || i >= range.end) && needs_[i] < peak) elsewhere = std::max(elsewhere, needs_[i]);
    const RangeAnswer answer = search_range({model_, order_, range, peak, elsewhere, states, patience_});
    work_ += answer.states * cost;
    if (!answer.order) return answer.gave_up ? Found::gave_up : Found::nothing;
    std::copy(answer.order->begin(), answer.order->end(), order_.begin() + static_cast<std::ptrdiff_t>(range.begin));
    needs_ = needs_of(model_, order_);
    return Found::better;
  }

  bool search_windows(const OrderRange& whole, std::size_t peak_at) {
    for (const std::size_t length : kWindows) {
      if (length >= whole.end - whole.begin || is_over()) return false;
      const std::size_t begin = std::max(whole.begin, peak_at - std::min(peak_at, length * 2 / 3));
      if (search({begin, std::min(whole.end, begin + length)}) == Found::better) return true;
    }
    return false;
  }

  const OrderModel& model_;
  const Patience& patience_;
  std::vector<UnitId> order_;
  std::vector<std::size_t> needs_;  // live bytes at each position
  const std::size_t floor_;
  std::size_t rounds_ = 0;
  std::size_t work_ = 0;
  std::size_t too_long_ = SIZE_MAX;  // length of the shortest range whose search gave up
};

}  // namespace

std::size_t least_need(const OrderModel& model) {
  std::size_t most = 0;
  for (const OrderModel::Storage& storage : model.storages) most += storage.survives ? storage.bytes : 0;
  for (UnitId u = 0; u < model.units(); ++u) {
    std::size_t need = 0;
    for (const StorageId s : model.reads[u]) need += model.storages[s].bytes;
    for (const StorageId s : model.makes[u]) need += model.storages[s].bytes;
    // What it makes may reuse what it reads, in place.
    std::vector<StorageId> taken;
    const auto pairs = model.in_place[u];
    for (std::size_t i = 0; i < pairs.size(); i += 2)
      if (std::find(taken.begin(), taken.end(), pairs[i]) == taken.end()) {
        taken.push_back(pairs[i]);
        need -= model.storages[pairs[i]].bytes;
      }
    most = std::max(most, need);
  }
  return most;
}

ImprovedOrder improve_order(const OrderModel& model, std::vector<UnitId> order, const Patience& patience) {
  return Improver(model, std::move(order), patience).run();
}

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/strategies.h"

#include "plan/pack/every_order.h"
#include "plan/pack/exact/exact.h"
#include "plan/pack/fit.h"
#include "plan/pack/improve.h"
#include "plan/pack/in_time.h"
#include "plan/pack/lowest.h"
#include "plan/pack/orders.h"

namespace berth::internal::plan {

namespace {

// For very many buffers, slow strategies that seldom win are skipped, unless there is a deadline or all are to
// run to the end.
bool is_left_out(const PackTask& task, Order order) {
  const bool seldom_wins = order == Order::life || order == Order::area || order == Order::conflicts;
  return seldom_wins && task.part.buffers.size() > kVeryMany && !task.patience.has_deadline() && task.below != SIZE_MAX;
}

template <Order order, Fit fit>
PackAnswer in_order(const PackTask& task) {
  if (is_left_out(task, order)) return {PackEnd::too_many};
  return pack_in_order(task, order_buffers(task.part, order), fit);
}

template <WalkDirection walk, Choice choice>
PackAnswer in_time(const PackTask& task) {
  return pack_in_time(task, walk, choice);
}

template <Order ties>
PackAnswer lowest(const PackTask& task) {
  if (is_left_out(task, ties)) return {PackEnd::too_many};
  return pack_lowest(task, ties);
}

PackAnswer exactly(const PackTask& task) { return pack_exact(task, {}); }

constexpr OffsetStrategy kStrategies[] = {
    {"out_best", "outwards from the peak, into the smallest range", in_time<WalkDirection::outwards, Choice::smallest>, Family::sweep},
    {"out_together", "outwards from the peak, next to what ends at the same time", in_time<WalkDirection::outwards, Choice::together>,
     Family::sweep},
    {"time_best", "in time order, into the smallest range", in_time<WalkDirection::forwards, Choice::smallest>, Family::sweep},
    {"time_together", "in time order, next to what ends at the same time", in_time<WalkDirection::forwards, Choice::together>,
     Family::sweep},
    {"back_best", "backwards in time, into the smallest range", in_time<WalkDirection::backwards, Choice::smallest>, Family::sweep},
    {"back_together", "backwards in time, next to what ends at the same time", in_time<WalkDirection::backwards, Choice::together>,
     Family::sweep},
    {"load_first", "by the most bytes live with it, lowest gap", in_order<Order::load, Fit::first>, Family::gaps},
    {"size_best", "largest first, smallest gap", in_order<Order::size, Fit::best>, Family::gaps},
    {"lowest_load", "always the buffer that fits lowest, then by load", lowest<Order::load>, Family::lowest},
    {"lowest_life", "always the buffer that fits lowest, then the longest", lowest<Order::life>, Family::lowest},
    {"life_best", "longest first, smallest gap", in_order<Order::life, Fit::best>, Family::gaps},
    {"size_first", "largest first, lowest gap", in_order<Order::size, Fit::first>, Family::gaps},
    {"area_best", "by bytes × steps, smallest gap", in_order<Order::area, Fit::best>, Family::gaps},
    {"area_first", "by bytes × steps, lowest gap", in_order<Order::area, Fit::first>, Family::gaps},
    {"life_first", "longest first, lowest gap", in_order<Order::life, Fit::first>, Family::gaps},
    {"load_best", "by the most bytes live with it, smallest gap", in_order<Order::load, Fit::best>, Family::gaps},
    {"conflicts_best", "by how many live with it, smallest gap", in_order<Order::conflicts, Fit::best>, Family::gaps},
    {"conflicts_first", "by how many live with it, lowest gap", in_order<Order::conflicts, Fit::first>, Family::gaps},
    {"lowest_time", "always the buffer that fits lowest, then in time order", lowest<Order::time>, Family::lowest},
    {"time_first", "in time order, lowest gap", in_order<Order::time, Fit::first>, Family::gaps},
    {"every_order", "all orders of up to seven buffers: exact", pack_every_order},
    {"promote", "lowest gap; what ends too high comes earlier next time", pack_promoting, Family::gaps},
    {"lowest_noise", "always the buffer that fits lowest, again and again with noise", pack_lowest_with_noise, Family::lowest},
    {"exact", "searches for a lower peak, one unit at a time, or proves that there is none", exactly},
};

}  // namespace

std::span<const OffsetStrategy> offset_strategies() noexcept { return kStrategies; }

std::string_view to_note(PackEnd end) noexcept {
  switch (end) {
    case PackEnd::done: return "";
    case PackEnd::above: return "stopped above the best";
    case PackEnd::too_much_live: return "given up: too much is live at once";
    case PackEnd::has_fixed: return "skipped: it cannot go around fixed offsets";
    case PackEnd::too_many: return "skipped: too many buffers";
    case PackEnd::gave_up: return "given up at its step limit: a time limit lets it go on";
    case PackEnd::out_of_time: return "stopped by the time limit";
  }
  return "";
}

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/pack/strategies.h"

namespace berth::internal::plan {

inline constexpr std::string_view kSlots = "slots";
inline constexpr std::string_view kPlainSlots = "slots_plain";

// The strategies that a name stands for.
struct ChosenStrategies {
  std::vector<const OffsetStrategy*> offsets = {};  // in the order in which they run
  bool slots = false;
  bool plain = false;  // the plain rule of slots; with `slots`, where it needs less
};

// Throws ArgumentError for one that is negative or no number.
void check_time_limit(std::chrono::duration<double> limit);

// Validates the other options. Throws ArgumentError: an unknown name, numbers out of range, options that have no meaning
// together.
ChosenStrategies check_options(const Graph& graph, const PlanOptions& options);

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/read/json_input.h"

namespace berth::internal::plan::read {

// The members of a file of a plan.
struct PlanFile {
  std::optional<JsonPlace> graph;
  std::optional<JsonPlace> plan;
};

// `top` must outlive what it answers, in which both are set.
PlanFile plan_file(const JsonPlace& top);

}  // namespace berth::internal::plan::read

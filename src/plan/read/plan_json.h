// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/read/json_input.h"

namespace berth::internal::plan::read {

// The members of a plan file.
struct PlanFileParts {
  std::optional<JsonPosition> graph;
  std::optional<JsonPosition> plan;
};

// Both members of the result are set. `top` must outlive it.
PlanFileParts plan_file(const JsonPosition& top);

}  // namespace berth::internal::plan::read

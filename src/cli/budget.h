// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/plan/plan.h"
#include "cli/commands.h"

// `berth plan --budget`.
namespace berth::internal::cli {

Exit run_budget(const PlanCommand& command, Graph graph, PlanOptions options);

}  // namespace berth::internal::cli

// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/verify.h"

#include <algorithm>

#include "plan/verify/judge.h"

namespace berth {

std::vector<PlanProblem> verify_plan(const Graph& graph, const PlanTables& plan, std::size_t most) {
  verification::Judge judge(graph, plan, std::max<std::size_t>(most, 1));
  for (const auto check : {verification::check_order, verification::check_shape, verification::check_places, verification::check_chunks,
                           verification::check_sharing, verification::check_run, verification::check_totals}) {
    check(judge);
    if (!judge.clean()) break;  // the rest would stand on sand
  }
  return std::move(judge).take();
}

}  // namespace berth

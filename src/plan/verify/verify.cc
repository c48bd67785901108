// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/verify.h"

#include <algorithm>

#include "plan/verify/judge.h"

namespace berth {

using namespace internal;
using namespace internal::plan;

std::vector<PlanProblem> verify_plan(const Graph& graph, const PlanTables& plan, std::size_t most) {
  verify::Judge judge(graph, plan, std::max<std::size_t>(most, 1));
  for (const auto check : {verify::check_order, verify::check_shape, verify::check_locations, verify::check_chunks, verify::check_reuse,
                           verify::check_run, verify::check_totals}) {
    check(judge);
    if (!judge.clean()) break;  // later checks rely on this one
  }
  return std::move(judge).take();
}

}  // namespace berth

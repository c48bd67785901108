// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/verify.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "plan/verify/judge.h"

namespace berth {

using namespace internal;
using namespace internal::plan;

namespace {

void check_alone(verify::Judge& judge) {
  for (const auto check : {verify::check_order, verify::check_shape, verify::check_locations, verify::check_chunks, verify::check_reuse,
                           verify::check_run, verify::check_totals}) {
    check(judge);
    if (!judge.clean()) break;  // later checks rely on this one
  }
}

void check_shared(verify::Judge& judge, const Graph& graph) {
  using enum PlanProblem::Kind;
  if (&judge.graph != &graph && judge.graph != graph) judge.say(shape, "the plans are of different graphs");
  if (judge.plan.outcome != PlanOutcome::optimal && judge.plan.outcome != PlanOutcome::feasible)
    judge.say(shape, "a plan without locations has no memory to go on with");
  if (!judge.plan.chunks.empty()) judge.say(shape, "a plan with chunks does not lie in one arena of its device");
}

}  // namespace

std::vector<PlanProblem> verify_plan(const Graph& graph, const PlanTables& plan, std::size_t most) {
  verify::Judge judge(graph, plan, std::max<std::size_t>(most, 1));
  check_alone(judge);
  return std::move(judge).take();
}

std::vector<PlanProblem> verify_plans(std::span<const Plan> plans, std::size_t most) {
  std::deque<verify::Judge> judges;
  bool clean = true;
  for (const Plan& plan : plans) {
    verify::Judge& judge = judges.emplace_back(plan.graph(), plan.tables(), std::max<std::size_t>(most, 1));
    check_alone(judge);
    if (judge.clean() && plans.size() > 1) check_shared(judge, plans.front().graph());
    clean = clean && judge.clean();
  }
  if (clean && !judges.empty()) verify::check_together(judges);
  std::vector<PlanProblem> problems;
  for (verify::Judge& judge : judges)
    for (PlanProblem& problem : std::move(judge).take())
      if (problems.size() < std::max<std::size_t>(most, 1)) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace berth

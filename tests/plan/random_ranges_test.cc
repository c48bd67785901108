// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "berth/plan/verify.h"
#include "plan/random_graph.h"
#include "support/everything.h"
#include "support/scale.h"

// Random graphs cut into ranges that are planned one after another, each after the one before it, and judged together.
namespace berth::testing {

using namespace internal::base;

namespace {

constexpr std::size_t kNodesToCut = 40;

// Two to six ranges that have nodes, as far as the graph has so many.
std::vector<NodeRange> random_cuts(Random& random, const Graph& graph) {
  std::vector<NodeId> bounds = {0, static_cast<NodeId>(graph.nodes.size())};
  for (std::uint64_t left = 1 + random.below(5); left > 0; --left)
    bounds.push_back(static_cast<NodeId>(random.below(graph.nodes.size() + 1)));
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  std::vector<NodeRange> ranges;
  for (std::size_t i = 1; i < bounds.size(); ++i) ranges.push_back({bounds[i - 1], bounds[i]});
  return ranges;
}

std::vector<Plan> plan_ranges(const std::shared_ptr<const Graph>& graph, const std::vector<NodeRange>& ranges, PlanOptions options) {
  std::vector<Plan> plans;
  plans.reserve(ranges.size());  // plans name the one before them
  for (const NodeRange& range : ranges) {
    options.nodes = range;
    options.after = plans.empty() ? nullptr : &plans.back();
    plans.push_back(plan(graph, options));
  }
  return plans;
}

// The memory that they need together.
std::size_t peak_of(const std::vector<Plan>& plans) {
  std::size_t sum = 0;
  for (std::size_t device = 0; device < plans.front().tables().arenas.size(); ++device) {
    std::size_t most = 0;
    for (const Plan& plan : plans) most = std::max(most, plan.tables().arenas[device].bytes);
    sum += most;
  }
  return sum;
}

PlanOptions options_for_range(Random& random) {
  PlanOptions options{.strategy = random.one_in(3) ? "slots" : random.one_in(2) ? "offsets" : "best"};
  options.inplace = !random.one_in(8);
  if (random.one_in(5)) options.alignment = std::size_t{1} << random.below(8);
  if (random.one_in(8)) options.order = "best";
  return options;
}

std::string words_of(const PlanOptions& options) { return options.strategy + ", alignment " + std::to_string(options.alignment); }

TEST(RandomRanges, AreRightTogether) {
  Random random(seed());
  const std::uint64_t runs = scaled(20'000, 300);
  std::uint64_t kept = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const auto graph = std::make_shared<const Graph>(random_graph(random, kNodesToCut));
    const std::vector<NodeRange> ranges = random_cuts(random, *graph);
    PlanOptions options = options_for_range(random);
    std::vector<Plan> plans;
    plans.reserve(ranges.size());
    for (const NodeRange& range : ranges) {
      if (random.one_in(4)) options = options_for_range(random);  // each range may be planned in its own way
      options.nodes = range;
      options.after = plans.empty() ? nullptr : &plans.back();
      plans.push_back(plan(graph, options));
      for (const ValueLocation& location : plans.back().tables().locations) kept += location.reuse == Reuse::kept;
    }
    const std::vector<PlanProblem> problems = verify_plans(plans);
    ASSERT_TRUE(problems.empty()) << "run " << i << ", " << words_of(options) << ": " << problems.front().text;
    if (i % 10 != 0) continue;
    const std::vector<Placement> memory = place(plans);
    for (const Placement& one : memory) ASSERT_TRUE(shadow_run(one).ok()) << "run " << i << " alone";
    const ShadowReport report = shadow_run(memory);
    ASSERT_TRUE(report.ok()) << "run " << i << ": " << report.wrong.front();
  }
  EXPECT_GT(kept, runs);
  did(std::to_string(runs) + " graphs in ranges, " + std::to_string(kept) + " values kept");
}

TEST(RandomRanges, NeedLittleMoreThanTheWholeGraph) {
  Random random(seed());
  const std::uint64_t runs = scaled(20'000, 300);
  for (const char* strategy : {"offsets", "slots"}) {
    double sum = 0;
    double worst = 1;
    std::uint64_t counted = 0;
    for (std::uint64_t i = 0; i < runs; ++i) {
      const auto graph = std::make_shared<const Graph>(random_graph(random, kNodesToCut));
      const std::size_t whole = plan(graph, {.strategy = strategy}).peak_bytes();
      if (whole == 0) continue;
      const std::vector<Plan> plans = plan_ranges(graph, random_cuts(random, *graph), {.strategy = strategy});
      const double ratio = static_cast<double>(peak_of(plans)) / static_cast<double>(whole);
      sum += ratio;
      worst = std::max(worst, ratio);
      ++counted;
    }
    const double mean = sum / static_cast<double>(counted);
    EXPECT_LT(mean, 1.10) << strategy;
    std::ostringstream out;
    out << counted << " graphs, " << strategy << ": in ranges " << std::fixed << std::setprecision(4) << mean << " x the whole, at worst "
        << worst;
    did(out.str());
  }
}

}  // namespace
}  // namespace berth::testing

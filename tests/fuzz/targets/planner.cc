// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "berth/plan/plan.h"
#include "berth/plan/verify.h"
#include "fuzz/graphs.h"
#include "fuzz/words.h"

// Any graph that is accepted is planned: by any strategy, and the verifier finds nothing.
namespace berth::testing::fuzz {
namespace {

constexpr std::size_t kMostNodes = 24;  // planning takes longer than reading: small graphs have the same branches

PlanOptions options_of(Draw& draw) {
  const auto strategies = plan_strategies();
  PlanOptions options{.strategy = std::string(strategies[draw.below(static_cast<std::uint8_t>(strategies.size()))].name)};
  options.parallel = options.strategy == "slots_plain" ? 1 : 1 + draw.below(3);
  if (draw.below(4) == 0) options.alignment = std::size_t{1} << draw.below(10);
  if (draw.below(4) == 0) options.max_chunk_bytes = draw.number<std::uint16_t>();
  options.time_limit = std::chrono::milliseconds(50);
  return options;
}

void run(std::string_view bytes) {
  Draw draw(bytes);
  const PlanOptions options = options_of(draw);
  const Graph graph = read_graph(draw.rest());
  if (graph.nodes.size() > kMostNodes || graph.values.size() > 2 * kMostNodes) return;
  const Plan made = plan(graph, options);
  require(verify_plan(made.graph(), made.tables()).empty(), "a plan that is made passes the verifier");
}

const Registered planner({.name = "planner", .run = run, .words = json_words({"id,lower,upper,size\n", " | "})});

}  // namespace
}  // namespace berth::testing::fuzz

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "berth/base/checked.h"
#include "berth/plan/verify.h"
#include "plan/random_graph.h"
#include "support/scale.h"

// A small planner with one bug at a time: the verifier must catch each of the mistakes that planners make
// within a few hundred random graphs, and report nothing without a bug.
namespace berth::testing {

using namespace internal::base;

namespace {

enum class Bug {
  none,
  frees_an_input_while_its_reader_runs,
  takes_a_place_one_node_late,
  lets_outputs_die,
  ignores_alignment,
  forgets_the_padding,
  overwrites_what_is_read_later,
  overwrites_what_the_node_reads_twice,
  lets_two_outputs_take_one_input,
  takes_an_input_that_is_too_small,
  takes_an_input_of_another_width,
  takes_a_view_of_a_larger_buffer,
  takes_an_ignored_input,
  takes_what_is_not_offered,
  calls_anything_an_identity,
  puts_views_at_a_wrong_offset,
  shares_across_devices,
  forgets_that_aliases_live_on,
  places_dynamic_values,
  leaves_out_unread_outputs,
  measures_the_arena_too_small,
  claims_a_better_bound,
  runs_in_parallel_without_edges,
};
constexpr int kBugs = 23;

class SmallPlanner {
 public:
  SmallPlanner(const Graph& graph, Bug bug) : graph_(graph), bug_(bug), facts_(graph.values.size()) {}

  PlanTables run() {
    tables_.nodes = {0, static_cast<NodeId>(graph_.nodes.size())};
    tables_.outcome = PlanOutcome::feasible;
    tables_.strategy = "small";
    tables_.parallel = is(Bug::runs_in_parallel_without_edges) ? 2 : 1;
    tables_.arenas.resize(graph_.devices.size());
    tables_.locations.resize(graph_.values.size());
    gather();
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) share(n);
    pack();
    measure();
    return std::move(tables_);
  }

 private:
  struct Facts {
    NodeId begin = UINT32_MAX;
    NodeId end = 0;
    std::size_t reads = 0;
    bool survives = false;
    std::uint32_t root = UINT32_MAX;  // of the values that use the same bytes
    std::size_t offset = 0;           // in the root
    bool part = false;
    // for a root:
    std::size_t pending = 0;
    bool kept = false;
    std::size_t bytes = 0;
    std::size_t alignment = 1;
  };

  bool is(Bug bug) const { return bug_ == bug; }
  static bool ignores(const GraphNode& node, std::size_t i) {
    return std::find(node.ignored_inputs.begin(), node.ignored_inputs.end(), i) != node.ignored_inputs.end();
  }
  ValueLocation& place(ValueId v) { return tables_.locations[v]; }
  std::size_t size(ValueId v) const { return graph_.values[v].size_bytes().value_or(0); }

  void gather() {
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      const GraphNode& node = graph_.nodes[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue || ignores(node, i)) continue;
        facts_[node.inputs[i]].end = is(Bug::frees_an_input_while_its_reader_runs) ? n : n + 1;
        ++facts_[node.inputs[i]].reads;
      }
      for (const ValueId v : node.outputs)
        if (v != kNoValue) facts_[v].begin = n;
    }
    for (ValueId v = 0; v < facts_.size(); ++v) {
      const GraphValue& value = graph_.values[v];
      Facts& fact = facts_[v];
      const bool dynamic = value.dynamic && !is(Bug::places_dynamic_values);
      ValueLocation& mine = place(v);
      mine.reason = value.external             ? UnplannedReason::external
                    : fact.begin == UINT32_MAX ? UnplannedReason::never_written
                    : dynamic                  ? UnplannedReason::dynamic
                    : value.size_bytes()       ? UnplannedReason::placed
                                               : UnplannedReason::unknown_size;
      fact.survives = value.output && !is(Bug::lets_outputs_die);
      fact.end = std::max(fact.end, fact.begin == UINT32_MAX ? 0 : fact.begin + 1);
      if (fact.survives) fact.end = tables_.nodes.end;
      if (is(Bug::takes_a_place_one_node_late) && fact.begin + 1 < fact.end) ++fact.begin;
      mine.alignment = value.alignment != 0 ? value.alignment : value.dtype ? alignment_of(*value.dtype) : 1;
      mine.extent_bytes = *try_align_up(size(v), mine.alignment);
    }
  }

  void share(NodeId n) {
    const GraphNode& node = graph_.nodes[n];
    for (const ViewOption& option : node.views)
      if (option.of_input) try_view(node, option);
    const bool all_ignored = node.ignored_inputs.size() >= node.inputs.size();
    if (!all_ignored || is(Bug::takes_an_ignored_input))
      for (const InplaceOption& option : node.inplace) try_inplace(node, option);
    if (is(Bug::takes_what_is_not_offered) && node.inplace.empty() && !node.inputs.empty() && !node.outputs.empty() &&
        node.inputs[0] != kNoValue && node.outputs[0] != kNoValue)
      try_inplace(node, {});
    for (const ValueId v : node.outputs)
      if (v != kNoValue && wanted(v) && place(v).reuse == Reuse::none) own(v);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoValue && !ignores(node, i) && place(node.inputs[i]).planned()) --root(node.inputs[i]).pending;
  }

  bool used(ValueId v) const { return facts_[v].reads != 0 || graph_.values[v].output; }
  bool wanted(ValueId v) { return place(v).reason == UnplannedReason::placed && (used(v) || !is(Bug::leaves_out_unread_outputs)); }
  Facts& root(ValueId v) { return facts_[facts_[v].root]; }

  void own(ValueId v) {
    Facts& fact = facts_[v];
    fact.root = v;
    fact.pending = fact.reads;
    fact.kept = fact.survives;
    fact.bytes = is(Bug::forgets_the_padding) ? size(v) : place(v).extent_bytes;
    fact.alignment = is(Bug::ignores_alignment) ? 1 : place(v).alignment;
    place(v).reuse = Reuse::own;
  }

  bool may_reuse(const GraphNode& node, ValueId v, std::uint32_t input) {
    const ValueId host = node.inputs[input];
    return wanted(v) && place(v).reuse == Reuse::none && place(host).planned() && used(v) && size(v) != 0 &&
           (!ignores(node, input) || is(Bug::takes_an_ignored_input)) &&
           (graph_.values[v].device == graph_.values[host].device || is(Bug::shares_across_devices));
  }

  void enter(ValueId v, ValueId host, std::size_t offset, Reuse reuse) {
    Facts& fact = facts_[v];
    fact.root = facts_[host].root;
    fact.offset = facts_[host].offset + offset;
    Facts& shared = root(v);
    shared.pending += fact.reads;
    shared.kept |= fact.survives;
    if (!is(Bug::forgets_that_aliases_live_on)) shared.end = std::max(shared.end, fact.end);
    if (!is(Bug::ignores_alignment)) shared.alignment = std::max(shared.alignment, place(v).alignment);
    place(v).reuse = reuse;
    place(v).with = host;
  }

  void try_view(const GraphNode& node, const ViewOption& option) {
    const ValueId v = node.outputs[option.output];
    const ValueId host = node.inputs[option.input];
    if (!may_reuse(node, v, option.input) || (facts_[host].offset + option.offset_bytes) % place(v).alignment != 0) return;
    enter(v, host, is(Bug::puts_views_at_a_wrong_offset) ? 0 : option.offset_bytes, Reuse::view);
    facts_[v].part = true;
  }

  static std::size_t width(const GraphValue& value) { return value.dtype ? size_bytes(*value.dtype) : 0; }

  void try_inplace(const GraphNode& node, const InplaceOption& option) {
    const ValueId v = node.outputs[option.output];
    const ValueId host = node.inputs[option.input];
    if (!may_reuse(node, v, option.input)) return;
    const bool taken =
        std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId o) { return o != kNoValue && place(o).with == host; });
    if (taken && !is(Bug::lets_two_outputs_take_one_input)) return;
    if (facts_[host].part && !is(Bug::takes_a_view_of_a_larger_buffer)) return;
    if (width(graph_.values[v]) != width(graph_.values[host]) && !is(Bug::takes_an_input_of_another_width)) return;
    if (facts_[host].offset % place(v).alignment != 0) return;
    const bool fits = size(v) <= size(host) && place(v).extent_bytes <= place(host).extent_bytes;
    if (!fits && !is(Bug::takes_an_input_that_is_too_small)) return;
    const bool same = fits && size(v) == size(host) && graph_.values[v].dtype == graph_.values[host].dtype;
    if ((option.identity && same) || is(Bug::calls_anything_an_identity)) return enter(v, host, 0, Reuse::identity);
    const auto here = std::count(node.inputs.begin(), node.inputs.end(), host);
    const bool twice = here > 1 && is(Bug::overwrites_what_the_node_reads_twice) && root(host).pending == static_cast<std::size_t>(here);
    const bool dies = !root(host).kept && (root(host).pending == 1 || twice || (taken && root(host).pending > 0));
    if (dies || is(Bug::overwrites_what_is_read_later)) enter(v, host, 0, Reuse::in_place);
  }

  // First fit, in the order of values.
  void pack() {
    std::vector<ValueId> placed;
    std::uint32_t buffers = 0;
    for (ValueId v = 0; v < facts_.size(); ++v) {
      if (facts_[v].root != v) continue;
      Facts& one = facts_[v];
      if (!is(Bug::forgets_the_padding)) one.bytes = (one.bytes + one.alignment - 1) / one.alignment * one.alignment;
      std::size_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (const ValueId other : placed) {
          const Facts& there = facts_[other];
          const bool together = there.begin < one.end && one.begin < there.end && graph_.values[other].device == graph_.values[v].device;
          if (!together || place(other).offset >= offset + one.bytes || offset >= place(other).offset + there.bytes) continue;
          offset = (place(other).offset + there.bytes + one.alignment - 1) / one.alignment * one.alignment;
          moved = true;
        }
      }
      place(v).offset = offset;
      place(v).buffer = buffers++;
      placed.push_back(v);
    }
    for (ValueId v = 0; v < facts_.size(); ++v) {
      if (facts_[v].root == UINT32_MAX || facts_[v].root == v) continue;
      place(v).offset = place(facts_[v].root).offset + facts_[v].offset;
      place(v).buffer = place(facts_[v].root).buffer;
    }
  }

  void measure() {
    for (ValueId v = 0; v < facts_.size(); ++v) {
      if (facts_[v].root != v) continue;
      PlanArena& arena = tables_.arenas[graph_.values[v].device];
      arena.bytes = std::max(arena.bytes, is(Bug::measures_the_arena_too_small) ? facts_[v].bytes : place(v).offset + facts_[v].bytes);
      arena.naive_bytes += facts_[v].bytes;
    }
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      std::vector<std::size_t> live(tables_.arenas.size(), 0);
      for (ValueId v = 0; v < facts_.size(); ++v)
        if (facts_[v].root == v && facts_[v].begin <= n && n < facts_[v].end) live[graph_.values[v].device] += facts_[v].bytes;
      for (std::size_t d = 0; d < live.size(); ++d)
        tables_.arenas[d].lower_bound_bytes = std::max(tables_.arenas[d].lower_bound_bytes, live[d]);
    }
    if (is(Bug::claims_a_better_bound)) tables_.arenas[0].lower_bound_bytes = tables_.arenas[0].bytes;
  }

  const Graph& graph_;
  const Bug bug_;
  std::vector<Facts> facts_;
  PlanTables tables_;
};

// The one problem that correct plans can have: more bytes than without reuse, which only alignment can cause.
bool only_above_naive(const std::vector<PlanProblem>& problems) {
  return std::all_of(problems.begin(), problems.end(),
                     [](const PlanProblem& one) { return one.text.find("bytes, more than the") != std::string::npos; });
}

TEST(PlantedBugs, WithoutABugEveryPlanIsRight) {
  Random random(seed());
  for (std::uint64_t i = 0; i < scaled(20'000, 500); ++i) {
    const Graph graph = random_graph(random);
    const std::vector<PlanProblem> problems = verify_plan(graph, SmallPlanner(graph, Bug::none).run());
    ASSERT_TRUE(only_above_naive(problems)) << "run " << i << ": " << problems.front().text;
  }
}

class PlantedBug : public ::testing::TestWithParam<int> {};

TEST_P(PlantedBug, IsCaught) {
  const auto bug = static_cast<Bug>(GetParam());
  Random random(seed());
  const int most = 5000;
  int graphs = 0;
  // A wrong lifetime makes the totals wrong too; that alone does not count, or the simulated run would not have
  // to find anything.
  const bool of_totals = bug == Bug::measures_the_arena_too_small || bug == Bug::claims_a_better_bound;
  for (bool caught = false; !caught && graphs < most; ++graphs) {
    const Graph graph = random_graph(random);
    const std::vector<PlanProblem> problems = verify_plan(graph, SmallPlanner(graph, bug).run());
    caught = !only_above_naive(problems) && (of_totals || problems.front().kind != PlanProblem::Kind::totals);
  }
  EXPECT_LT(graphs, most) << "the verifier let bug " << GetParam() << " pass in " << most << " graphs";
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedBug, ::testing::Range(1, kBugs));

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>

#include "plan/verify/contents.h"
#include "plan/verify/judge.h"
#include "plan/verify/order.h"

namespace berth::internal::plan::verify {

namespace {

using enum PlanProblem::Kind;

// Runs the nodes in their order. What a node finds there it finds in every order that the graph and the plan's edges allow, if everyone
// who used the bytes before a write precedes the writer: that is checked beside it.
class ThoughtRun {
 public:
  explicit ThoughtRun(Judge& judge) : judge_(judge), written_(judge.facts.size(), false) {
    const bool parallel = judge.plan.parallel > 1;
    arenas_.assign(judge.plan.arenas.size(), Contents(parallel));
    if (parallel) order_.emplace(judge.graph, judge.plan.nodes, judge.plan.edges);
  }

  void run() {
    for (NodeId step = judge_.plan.nodes.begin; step < judge_.plan.nodes.end && joined_runs_ <= kMostJoinedRuns; ++step) {
      const NodeId n = judge_.node_at(step);
      read_inputs(n);
      for (std::uint32_t o = 0; o < judge_.graph.nodes[n].outputs.size(); ++o) write_output(n, o);
    }
    for (ValueId v = 0; v < judge_.facts.size(); ++v)
      if (place(v).planned() && judge_.facts[v].survives) read(kNoNode, v);
  }

 private:
  const ValuePlace& place(ValueId v) const { return judge_.plan.places[v]; }
  Contents& arena(ValueId v) { return arenas_[judge_.graph.values[v].device]; }

  void read_inputs(NodeId n) {
    const GraphNode& node = judge_.graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v != kNoValue && !Judge::ignores(node, i) && place(v).planned()) read(n, v);
    }
  }

  void read(NodeId n, ValueId v) {
    const Contents::Mismatch wrong = arena(v).read(n, v, place(v).offset, expected(v));
    if (!wrong.found) return;
    const std::string reader = n == kNoNode ? "who comes after" : judge_.node(n);
    judge_.say(overlap, reader, " reads ", judge_.value(v), " and finds ", wrong.held == kNoValue ? "nothing" : judge_.value(wrong.held),
               " at ", wrong.offset);
  }

  void write_output(NodeId n, std::uint32_t o) {
    const GraphNode& node = judge_.graph.nodes[n];
    const ValueId v = node.outputs[o];
    if (v == kNoValue || !place(v).planned()) return;
    switch (place(v).sharing) {
      case Sharing::own:
      case Sharing::in_place: write(n, v, 0, place(v).extent_bytes); break;
      case Sharing::identity: expected_[v] = part(expected(place(v).with), 0, place(v).extent_bytes); break;
      case Sharing::view:
        expected_[v] = part(expected(place(v).with), place(v).offset - place(place(v).with).offset, judge_.bytes(v));
        break;
      case Sharing::joined: write_joined(n, node, o, v); break;
      case Sharing::none: break;
    }
    written_[v] = true;
  }

  // What a value's place should hold, from its start; nothing before it is written. Good until the next call.
  std::span<const Run> expected(ValueId v) {
    if (!written_[v]) return {};
    if (const auto at = expected_.find(v); at != expected_.end()) return at->second;
    own_ = {place(v).extent_bytes, v, 0};
    return {&own_, own_.bytes == 0 ? 0U : 1U};
  }

  // A range of some runs.
  static std::vector<Run> part(std::span<const Run> runs, std::size_t begin, std::size_t bytes) {
    std::vector<Run> out;
    for (const Run& run : runs) {
      if (begin >= run.bytes) {
        begin -= run.bytes;
        continue;
      }
      const std::size_t taken = std::min(bytes, run.bytes - begin);
      if (taken != 0) out.push_back({taken, run.content, run.content_begin + begin});
      bytes -= taken;
      begin = 0;
    }
    return out;
  }

  // Content of its own for a range of a value.
  Run write(NodeId n, ValueId v, std::size_t begin, std::size_t bytes) {
    const Run run{bytes, v, begin};
    arena(v).write(n, place(v).offset + begin, run, [&](const Piece& lost) { check_lost(n, v, lost); });
    return run;
  }

  // A node may write over what nobody needs any more; what it reads itself only in place, and never what it has just written.
  void check_lost(NodeId n, ValueId v, const Piece& lost) {
    if (lost.writer == n) judge_.say(overlap, judge_.node(n), " writes ", judge_.value(v), " over its own ", judge_.value(lost.content));
    const bool taken = place(v).sharing == Sharing::in_place && lost.read_as == place(v).with;
    if (lost.reader == n && !taken)
      judge_.say(overlap, judge_.node(n), " writes ", judge_.value(v), " over ", judge_.value(lost.content), ", which it reads");
    if (!order_) return;
    for (const NodeId user : lost.users)
      if (user != n && !order_->precedes(user, n))
        judge_.say(order, judge_.node(n), " writes ", judge_.value(v), " over ", judge_.value(lost.content), ", which ", judge_.node(user),
                   " may still use");
  }

  // The inputs that lie in it stay as they are; the rest is written.
  void write_joined(NodeId n, const GraphNode& node, std::uint32_t o, ValueId v) {
    std::vector<const ViewOption*> parts;
    for (const ViewOption& option : node.views)
      if (option.output == o && is_joined(judge_, node, option)) parts.push_back(&option);
    std::sort(parts.begin(), parts.end(), [](const ViewOption* a, const ViewOption* b) { return a->offset_bytes < b->offset_bytes; });
    std::vector<Run>& runs = expected_[v];
    std::size_t done = 0;
    for (const ViewOption* option : parts) {
      const ValueId input = node.inputs[option->input];
      const std::size_t end = option->offset_bytes + place(input).extent_bytes;
      if (end <= done) continue;
      if (option->offset_bytes > done) runs.push_back(write(n, v, done, option->offset_bytes - done));
      // Where inputs lie over one another they hold the same, or this node would have found one of them overwritten.
      const std::size_t from = std::max(done, option->offset_bytes);
      for (const Run& run : part(expected(input), from - option->offset_bytes, end - from)) runs.push_back(run);
      done = end;
    }
    joined_runs_ += runs.size();
    if (joined_runs_ > kMostJoinedRuns) judge_.say(shape, judge_.value(v), " lies too deep in joins of joins to be followed");
    if (done > place(v).extent_bytes) judge_.say(bounds, judge_.value(v), " does not hold all of its inputs");
    if (done < place(v).extent_bytes) runs.push_back(write(n, v, done, place(v).extent_bytes - done));
  }

  static constexpr std::size_t kMostJoinedRuns = std::size_t{1} << 24;  // each join repeats what its inputs hold

  Judge& judge_;
  std::size_t joined_runs_ = 0;
  std::vector<Contents> arenas_;
  std::vector<bool> written_;                               // of each value
  std::unordered_map<ValueId, std::vector<Run>> expected_;  // of those whose bytes others have written too; the rest hold what they wrote
  Run own_ = {};
  std::optional<Order> order_;
};

}  // namespace

void check_run(Judge& judge) { ThoughtRun(judge).run(); }

}  // namespace berth::internal::plan::verify

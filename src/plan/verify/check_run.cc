// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/allowance.h"
#include "plan/look_ahead.h"
#include "plan/verify/contents.h"
#include "plan/verify/judge.h"
#include "plan/verify/order.h"

namespace berth::internal::plan::verify {

namespace {

using enum PlanProblem::Kind;

// Simulates the nodes in their order. A node finds the same content in every order that the graph and the
// plan's edges allow, if all users of the bytes that a write replaces happen before the writer; that is
// checked, too.
class SimulatedRun {
 public:
  // Several plans of ranges run one after another, and each range alone is known to be right.
  SimulatedRun(Judge& judge, bool one_of_several) : judge_(&judge), written_(judge.facts.size(), false) {
    arenas_.assign(judge.plan.arenas.size(), Contents(judge.plan.parallel > 1 && !one_of_several));
  }

  void run() {
    write_kept();
    run_nodes();
    check_waits();
  }

  // Runs the range of another plan on what the one before it left.
  void go_on(Judge& next) {
    const Judge& before = *std::exchange(judge_, &next);
    if (next.plan.nodes.begin < before.plan.nodes.end)
      return next.say(shape, "nodes ", next.plan.nodes.begin, " to ", next.plan.nodes.end, " do not come after nodes ",
                      before.plan.nodes.begin, " to ", before.plan.nodes.end);
    for (ValueId v = 0; v < next.facts.size(); ++v)
      if (next.facts[v].used || next.facts[v].kept) check_kept(before, v);
    if (next.clean()) run_nodes();
  }

 private:
  void run_nodes() {
    for (NodeId step = judge_->plan.nodes.begin; step < judge_->plan.nodes.end && joined_runs_ <= kMostJoinedRuns; ++step) {
      const NodeId n = judge_->node_at(step);
      base::checkpoint();
      look_ahead(judge_->graph, n, judge_->plan.locations, judge_->facts, judge_->graph.values);
      read_inputs(n);
      for (std::uint32_t o = 0; o < judge_->graph.nodes[n].outputs.size(); ++o) write_output(n, o);
    }
    for (ValueId v = 0; v < judge_->facts.size(); ++v)
      if (location(v).planned() && judge_->facts[v].survives) read(kNoNode, v);
  }

  // What is kept holds, alone, what the plan says: equal content where two values overlap.
  void write_kept() {
    for (ValueId v = 0; v < judge_->facts.size(); ++v) written_[v] = judge_->facts[v].kept;
    std::vector<ValueId> together;
    std::size_t end = 0;
    const auto write_together = [&] {
      if (together.empty()) return;
      const std::size_t begin = location(together.front()).offset;
      arena(together.front()).write(kNoNode, begin, {end - begin, together.front(), 0}, [](const Piece&) {});
      for (const ValueId v : together) expected_[v] = {{location(v).extent_bytes, together.front(), location(v).offset - begin}};
      together.clear();
    };
    for (const ValueId v : kept_by_offset(*judge_)) {
      const bool overlaps =
          !together.empty() && judge_->graph.values[together.front()].device == judge_->graph.values[v].device && location(v).offset < end;
      if (!overlaps) {
        write_together();
        end = 0;
      }
      together.push_back(v);
      end = std::max(end, location(v).offset + location(v).extent_bytes);
    }
    write_together();
  }

  // A value that lives on from the ranges before is kept where it lies, and nothing else is.
  void check_kept(const Judge& before, ValueId v) {
    const ValueLocation& was = before.plan.locations[v];
    const ValueLocation& is = location(v);
    if (!was.planned() && !judge_->facts[v].kept) return;
    if (!judge_->facts[v].kept)
      return judge_->say(shape, judge_->value(v), " lives on from nodes ", before.plan.nodes.begin, " to ", before.plan.nodes.end,
                         ", and the plan of nodes ", judge_->plan.nodes.begin, " to ", judge_->plan.nodes.end, " does not keep it");
    if (!was.planned()) return judge_->say(shape, judge_->value(v), " is said to be kept, and no plan before has it");
    const bool moved = was.extent_bytes != 0 && (was.offset != is.offset || was.alignment != is.alignment);
    if (moved) return judge_->say(overlap, judge_->value(v), " lies at ", was.offset, ", and the next plan looks for it at ", is.offset);
    if (was.slot != kNoSlot && is.slot != kNoSlot && was.slot != is.slot)
      judge_->say(overlap, judge_->value(v), " is in slot ", was.slot, ", and the next plan looks for it in slot ", is.slot);
  }

  const ValueLocation& location(ValueId v) const { return judge_->plan.locations[v]; }
  Contents& arena(ValueId v) { return arenas_[judge_->graph.values[v].device]; }

  void read_inputs(NodeId n) {
    const GraphNode& node = judge_->graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      base::checkpoint();
      if (v != kNoValue && !Judge::ignores(node, i) && location(v).planned()) read(n, v);
    }
  }

  void read(NodeId n, ValueId v) {
    const Contents::Mismatch wrong = arena(v).read(n, v, location(v).offset, expected(v));
    if (!wrong.found) return;
    const std::string reader = n == kNoNode ? "the caller" : judge_->node(n);
    judge_->say(overlap, reader, " reads ", judge_->value(v), " and finds ", wrong.held == kNoValue ? "nothing" : judge_->value(wrong.held),
                " at ", wrong.offset);
  }

  void write_output(NodeId n, std::uint32_t o) {
    const GraphNode& node = judge_->graph.nodes[n];
    const ValueId v = node.outputs[o];
    base::checkpoint();
    if (v == kNoValue || !location(v).planned()) return;
    switch (location(v).reuse) {
      case Reuse::own:
      case Reuse::in_place: write(n, v, 0, location(v).extent_bytes); break;
      case Reuse::identity: expected_[v] = part(expected(location(v).with), 0, location(v).extent_bytes); break;
      case Reuse::view:
        expected_[v] = part(expected(location(v).with), location(v).offset - location(location(v).with).offset, judge_->bytes(v));
        break;
      case Reuse::joined: write_joined(n, node, o, v); break;
      case Reuse::kept:
      case Reuse::none: break;
    }
    written_[v] = true;
  }

  // The content that a value should have; nothing before it is written. Valid until the next call.
  std::span<const Run> expected(ValueId v) {
    if (!written_[v]) return {};
    if (const auto at = expected_.find(v); at != expected_.end()) return at->second;
    own_ = {location(v).extent_bytes, v, 0};
    return {&own_, own_.bytes == 0 ? 0U : 1U};
  }

  // A subrange of a list of runs.
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

  static std::size_t bytes_of(std::span<const Run> runs) {
    std::size_t sum = 0;
    for (const Run& run : runs) sum += run.bytes;
    return sum;
  }

  // Writes fresh content to a range of a value.
  Run write(NodeId n, ValueId v, std::size_t begin, std::size_t bytes) {
    const Run run{bytes, v, begin};
    arena(v).write(n, location(v).offset + begin, run, [&](const Piece& lost) { check_lost(n, v, lost); });
    return run;
  }

  // A node may overwrite content that no node needs any more; its own inputs only in place, and never its own
  // outputs.
  void check_lost(NodeId n, ValueId v, const Piece& lost) {
    if (lost.writer == n)
      judge_->say(overlap, judge_->node(n), " writes ", judge_->value(v), " over its own ", judge_->value(lost.content));
    const bool taken = location(v).reuse == Reuse::in_place && lost.read_as == location(v).with;
    if (lost.reader == n && !taken)
      judge_->say(overlap, judge_->node(n), " writes ", judge_->value(v), " over ", judge_->value(lost.content), ", which it reads");
    for (const NodeId user : lost.users)  // in a parallel plan
      if (user != n && user != kNoNode) waits_.push_back({{user, n}, v, lost.content});
  }

  // Whoever uses bytes for the last time ends before they are overwritten.
  void check_waits() {
    if (waits_.empty()) return;
    const auto key = [](const Wait& wait) { return std::pair(wait.edge.after, wait.edge.before); };
    std::ranges::stable_sort(waits_, {}, key);
    waits_.erase(std::unique(waits_.begin(), waits_.end(), [&](const Wait& a, const Wait& b) { return key(a) == key(b); }), waits_.end());
    std::vector<PlanEdge> pairs;
    for (const Wait& wait : waits_) pairs.push_back(wait.edge);
    const std::vector<bool> implied = Order(judge_->graph, judge_->plan.nodes, judge_->plan.edges).implied(pairs);
    for (std::size_t i = 0; i < waits_.size(); ++i)
      if (!implied[i])
        judge_->say(order, judge_->node(pairs[i].after), " writes ", judge_->value(waits_[i].written), " over ",
                    judge_->value(waits_[i].lost), ", which ", judge_->node(pairs[i].before), " may still use");
  }

  // The inputs that are already in the output stay; the rest is written.
  void write_joined(NodeId n, const GraphNode& node, std::uint32_t o, ValueId v) {
    std::vector<const ViewOption*> parts;
    for (const ViewOption& option : node.views)
      if (option.output == o && is_joined(*judge_, node, option)) parts.push_back(&option);
    std::sort(parts.begin(), parts.end(), [](const ViewOption* a, const ViewOption* b) { return a->offset_bytes < b->offset_bytes; });
    std::vector<Run>& runs = expected_[v];
    std::size_t done = 0;
    for (const ViewOption* option : parts) {
      const ValueId input = node.inputs[option->input];
      const std::size_t end = option->offset_bytes + bytes_of(expected(input));  // of a view without its padding
      if (end <= done) continue;
      if (option->offset_bytes > done) runs.push_back(write(n, v, done, option->offset_bytes - done));
      // Where inputs overlap they have the same content, or this node would have found one of them overwritten.
      const std::size_t from = std::max(done, option->offset_bytes);
      for (const Run& run : part(expected(input), from - option->offset_bytes, end - from)) runs.push_back(run);
      done = end;
    }
    joined_runs_ += runs.size();
    if (joined_runs_ > kMostJoinedRuns) judge_->say(shape, judge_->value(v), " lies too deep in joins of joins to be followed");
    if (done > location(v).extent_bytes) judge_->say(bounds, judge_->value(v), " does not hold all of its inputs");
    if (done < location(v).extent_bytes) runs.push_back(write(n, v, done, location(v).extent_bytes - done));
  }

  static constexpr std::size_t kMostJoinedRuns = std::size_t{1} << 24;  // each join repeats the runs of its
                                                                        // inputs

  Judge* judge_;
  std::size_t joined_runs_ = 0;
  std::vector<Contents> arenas_;
  std::vector<bool> written_;  // of each value
  // For values whose bytes were partly written by others; all others hold what they wrote.
  std::unordered_map<ValueId, std::vector<Run>> expected_;
  Run own_ = {};
  struct Wait {
    PlanEdge edge;
    ValueId written;
    ValueId lost;
  };
  std::vector<Wait> waits_;  // in a parallel plan: the edges that there must be, or paths
};

}  // namespace

std::vector<ValueId> kept_by_offset(const Judge& judge) {
  std::vector<ValueId> kept;
  for (ValueId v = 0; v < judge.facts.size(); ++v)
    if (judge.facts[v].kept && judge.plan.locations[v].extent_bytes != 0) kept.push_back(v);
  std::sort(kept.begin(), kept.end(), [&](ValueId a, ValueId b) {
    const auto key = [&](ValueId v) { return std::tuple(judge.graph.values[v].device, judge.plan.locations[v].offset, v); };
    return key(a) < key(b);
  });
  return kept;
}

void check_run(Judge& judge) { SimulatedRun(judge, false).run(); }

void check_together(std::deque<Judge>& judges) {
  SimulatedRun run(judges.front(), true);
  run.run();
  for (std::size_t i = 1; i < judges.size() && judges[i - 1].clean(); ++i) run.go_on(judges[i]);
}

}  // namespace berth::internal::plan::verify

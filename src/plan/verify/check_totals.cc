// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/allowance.h"
#include "berth/base/checked.h"
#include "plan/verify/judge.h"
#include "plan/verify/refute.h"
#include "plan/verify/unordered.h"

namespace berth::internal::plan::verify {

namespace {

using enum PlanProblem::Kind;

// Values that use the same bytes by options: their hull in time and in addresses.
struct Group {
  NodeId begin = UINT32_MAX;
  NodeId end = 0;
  std::size_t low = SIZE_MAX;
  std::size_t high = 0;
  std::size_t alignment = 1;
  std::uint32_t device = 0;
  std::uint32_t buffer = kNoBuffer;
  bool fixed = false;
  bool kept = false;  // by values that are kept: no more than their bytes

  std::size_t bytes() const { return high <= low ? 0 : (high - low + unit() - 1) / unit() * unit(); }
  std::size_t unit() const { return kept ? 1 : alignment; }
};

class Groups {
 public:
  explicit Groups(Judge& judge) : judge_(judge), parent_(judge.facts.size()) {
    std::iota(parent_.begin(), parent_.end(), ValueId{0});
    for (ValueId v = 0; v < parent_.size(); ++v)
      if (const ValueLocation& location = judge.plan.locations[v]; location.planned() && location.with != kNoValue) unite(v, location.with);
    for (NodeId n = judge.plan.nodes.begin; n < judge.plan.nodes.end; ++n) {
      const GraphNode& node = judge.graph.nodes[n];
      base::checkpoint();
      for (const ViewOption& option : node.views)
        if (is_joined(judge, node, option)) unite(node.inputs[option.input], node.outputs[option.output]);
    }
    unite_kept();
  }

  std::vector<Group> gather() {
    constexpr std::uint32_t kNone = UINT32_MAX;
    std::vector<std::uint32_t> number(parent_.size(), kNone);  // of the root's group
    std::vector<Group> out;
    std::size_t roots = 0;
    for (ValueId v = 0; v < parent_.size(); ++v) roots += parent_[v] == v && judge_.plan.locations[v].planned() ? 1U : 0U;
    out.reserve(roots);
    for (ValueId v = 0; v < parent_.size(); ++v) {
      if (!judge_.plan.locations[v].planned()) continue;
      std::uint32_t& its = number[find(v)];
      if (its == kNone) {
        its = static_cast<std::uint32_t>(out.size());
        out.emplace_back();
      }
      add(out[its], v);
    }
    return out;
  }

 private:
  // Kept values whose bytes overlap, such as a view and its whole.
  void unite_kept() {
    const std::vector<ValueId> kept = kept_by_offset(judge_);
    std::size_t end = 0;  // of the group
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const ValueLocation& location = judge_.plan.locations[kept[i]];
      const bool same_device = i != 0 && judge_.graph.values[kept[i]].device == judge_.graph.values[kept[i - 1]].device;
      if (same_device && location.offset < end) unite(kept[i], kept[i - 1]);
      end = std::max(same_device ? end : 0, location.offset + location.extent_bytes);
    }
  }

  void add(Group& group, ValueId v) {
    const ValueLocation& location = judge_.plan.locations[v];
    const Known& known = judge_.facts[v];
    const std::size_t bytes = judge_.bytes(v);
    group.begin = std::min(group.begin, known.writer);
    group.end = std::max(group.end, known.survives ? judge_.plan.nodes.end : known.last + 1);
    group.low = std::min(group.low, location.offset);
    // A view has no padding of its own.
    group.high = std::max(group.high, location.offset + (location.reuse == Reuse::view ? bytes : location.extent_bytes));
    group.alignment = std::max(group.alignment, location.alignment);
    group.device = judge_.graph.values[v].device;
    group.kept |= known.kept;
    group.fixed |= (known.kept || judge_.graph.values[v].fixed_offset.has_value()) && bytes != 0;
    if (group.buffer != kNoBuffer && group.buffer != location.buffer)
      judge_.say(totals, judge_.value(v), " is in another buffer than the value whose bytes it reuses");
    group.buffer = location.buffer;
  }

  ValueId find(ValueId v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void unite(ValueId a, ValueId b) { parent_[find(a)] = find(b); }

  Judge& judge_;
  std::vector<ValueId> parent_;
};

std::size_t most_live(const std::vector<Group>& groups, NodeRange nodes) {
  // Differences may wrap, prefix sums do not.
  std::vector<std::size_t> changes(nodes.end - nodes.begin + std::size_t{1}, 0);
  std::size_t most = 0;
  for (const Group& group : groups) {
    changes[group.begin - nodes.begin] += group.bytes();
    changes[group.end - nodes.begin] -= group.bytes();
    if (group.fixed && group.bytes() != 0) most = std::max(most, group.low + group.bytes());
  }
  std::size_t live = 0;
  for (const std::size_t change : changes) {
    live += change;
    most = std::max(most, live);
  }
  return most;
}

bool is_live(const Group& group, NodeRange steps) { return group.begin < steps.end && steps.begin < group.end; }

// A bound above the peak of live bytes is accepted only if it can be proved.
bool needs_at_least(const std::vector<Group>& groups, NodeRange steps, std::size_t bytes) {
  std::vector<LivingBuffer> buffers;
  for (const Group& group : groups)
    if (is_live(group, steps))
      buffers.push_back({group.bytes(), group.begin, group.end, group.unit(), group.fixed ? std::optional(group.low) : std::nullopt});
  return surely_do_not_fit(std::move(buffers), bytes - 1);
}

// Whether the buffers of these values come to so many bytes, and no two of them may share any.
bool all_at_once(const Judge& judge, const std::vector<ValueId>& values, const std::vector<Group>& groups, std::size_t bytes) {
  std::unordered_map<std::uint32_t, std::size_t> left;  // the bytes of each buffer that was not named yet
  for (const Group& group : groups) left.emplace(group.buffer, group.bytes());
  std::vector<std::uint32_t> buffers;
  std::optional<std::size_t> sum = 0;
  for (const ValueId v : values) {
    if (v >= judge.plan.locations.size()) return false;
    const auto found = left.find(judge.plan.locations[v].buffer);
    if (found == left.end()) return false;
    buffers.push_back(found->first);
    if (sum) sum = try_add(*sum, found->second);
    left.erase(found);
  }
  return sum == bytes && judge.plan.parallel > 1 && are_unordered(judge, buffers);
}

// Whether a proof holds.
bool shows(const Judge& judge, const BoundProof& proof, const std::vector<Group>& groups, std::size_t bound, std::size_t most) {
  const NodeRange steps = proof.steps;
  const bool one_step = steps.begin < steps.end && steps.end - steps.begin == 1;
  switch (proof.by) {
    case BoundProof::By::unsaid: return bound == most || needs_at_least(groups, {0, UINT32_MAX}, bound);
    case BoundProof::By::search: return bound != 0 && needs_at_least(groups, steps, bound);
    case BoundProof::By::fixed:
      return one_step && std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
               return group.fixed && is_live(group, steps) && group.low + group.bytes() == bound;
             });
    case BoundProof::By::unordered: return all_at_once(judge, proof.values, groups, bound);
    case BoundProof::By::live: {
      std::size_t live = 0;
      for (const Group& group : groups)
        if (is_live(group, steps))
          live += group.bytes();  // of one step: at most `most_live`, which does not
                                  // overflow
      return live == bound && (one_step || bound == 0);
    }
  }
  return false;
}

void check_buffers(Judge& judge, const std::vector<Group>& groups) {
  std::vector<bool> used(groups.size(), false);
  for (const Group& group : groups)
    if (group.buffer < used.size()) used[group.buffer] = true;
  const auto missing = std::find(used.begin(), used.end(), false);
  if (missing != used.end()) judge.say(totals, "buffer ", missing - used.begin(), " is used twice, or not at all");
}

// REQUIRES: the groups are those of the device.
void check_arena(Judge& judge, const std::vector<Group>& groups, std::size_t device) {
  const PlanArena& arena = judge.plan.arenas[device];
  const std::string& name = judge.graph.devices[device];
  std::optional<std::size_t> naive = 0;
  std::size_t top = 0;
  bool fixed = false;
  for (const Group& group : groups) {
    if (naive) naive = try_add(*naive, group.bytes());
    if (group.bytes() != 0) top = std::max(top, group.low + group.bytes());
    fixed |= group.fixed;
  }
  if (arena.naive_bytes != naive) return judge.say(totals, name, " does not have ", arena.naive_bytes, " bytes without reuse");
  const std::size_t bound = arena.lower_bound_bytes;
  const std::size_t most = most_live(groups, judge.plan.nodes);
  if (bound < most) return judge.say(totals, name, " has a lower bound of ", bound, " and needs ", most);
  if (!shows(judge, arena.proof, groups, bound, most))
    return judge.say(totals, name, " has a lower bound of ", bound, " and needs ", most, " as far as is shown: the proof by ",
                     to_string(arena.proof.by), " does not hold");
  if (arena.bytes < bound) judge.say(totals, name, " has ", arena.bytes, " bytes and needs ", bound);
  if (judge.plan.slots.empty() && arena.bytes != top) judge.say(totals, name, " has ", arena.bytes, " bytes and uses ", top);
  if (arena.bytes > *naive && !fixed && judge.plan.slots.empty() && judge.plan.chunks.empty())
    judge.say(totals, name, " has ", arena.bytes, " bytes, more than the ", *naive, " without reuse");
  if (judge.plan.outcome == PlanOutcome::optimal && arena.bytes != bound)
    judge.say(totals, name, " is said to be optimal, and is above its bound");
}

}  // namespace

void check_totals(Judge& judge) {
  if (judge.plan.outcome != PlanOutcome::optimal && judge.plan.outcome != PlanOutcome::feasible) {
    for (const PlanArena& arena : judge.plan.arenas)
      if (arena.bytes != 0) judge.say(totals, "there is no plan, and an arena of ", arena.bytes, " bytes");
    return;
  }
  std::vector<Group> groups = Groups(judge).gather();
  check_buffers(judge, groups);
  std::vector<std::vector<Group>> by_device(judge.plan.arenas.size());
  if (by_device.size() == 1)
    by_device[0] = std::move(groups);
  else
    for (const Group& group : groups) by_device[group.device].push_back(group);
  for (std::size_t device = 0; device < by_device.size(); ++device) check_arena(judge, by_device[device], device);
}

}  // namespace berth::internal::plan::verify

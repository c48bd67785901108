// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/allowance.h"
#include "plan/verify/judge.h"

namespace berth::internal::plan::verify {

namespace {

using enum PlanProblem::Kind;

std::size_t width(const GraphValue& value) { return value.dtype ? size_bytes(*value.dtype) : 0; }

class Claims {
 public:
  explicit Claims(Judge& judge) : judge_(judge), inside_larger_(judge.facts.size(), false) {}

  void check(NodeId n) {
    const GraphNode& node = judge_.graph.nodes[n];
    base::checkpoint();
    for (std::uint32_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId v = node.outputs[o];
      if (v == kNoValue || !location(v).planned()) continue;
      switch (location(v).reuse) {
        case Reuse::in_place:
        case Reuse::identity: check_taken(node, o, v); break;
        case Reuse::view: check_view(node, o, v); break;
        case Reuse::joined: check_joined(node, o, v); break;
        case Reuse::own: expect(location(v).with == kNoValue, v, "has bytes of its own and names another"); break;
        case Reuse::kept:
        case Reuse::none: break;
      }
    }
    mark_ranges(node);
  }

 private:
  const ValueLocation& location(ValueId v) const { return judge_.plan.locations[v]; }
  bool expect(bool fact, ValueId v, std::string_view what) {
    if (!fact) judge_.say(reuse, judge_.value(v), " ", what);
    return fact;
  }

  // The host is an input that the node reads, planned on the same device.
  bool check_host(const GraphNode& node, ValueId v) {
    const ValueId host = location(v).with;
    return expect(host < judge_.facts.size(), v, "reuses the bytes of no value") && expect(host != v, v, "reuses its own bytes") &&
           expect(location(host).planned(), v, "reuses the bytes of a value that is not planned") &&
           expect(judge_.graph.values[host].device == judge_.graph.values[v].device, v, "reuses bytes on another device") &&
           expect(reads(node, host), v, "reuses the bytes of a value that its node does not read") &&
           expect(judge_.facts[v].used, v, "reuses bytes, though unused");
  }

  static bool reads(const GraphNode& node, ValueId host) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == host && !Judge::ignores(node, i)) return true;
    return false;
  }

  void check_taken(const GraphNode& node, std::uint32_t o, ValueId v) {
    if (!check_host(node, v)) return;
    const ValueId host = location(v).with;
    const bool identity = location(v).reuse == Reuse::identity;
    const bool offered = std::any_of(node.inplace.begin(), node.inplace.end(), [&](const InplaceOption& option) {
      return option.output == o && node.inputs[option.input] == host && !Judge::ignores(node, option.input) &&
             (option.identity || !identity);
    });
    const GraphValue& mine = judge_.graph.values[v];
    const GraphValue& theirs = judge_.graph.values[host];
    expect(offered, v, "takes an input that its node does not offer");
    expect(!inside_larger_[host], v, "takes a range of a larger buffer");
    expect(width(mine) == width(theirs), v, "takes an input whose elements have another width");
    expect(location(v).offset == location(host).offset, v, "lies elsewhere than the input it takes");
    expect(judge_.bytes(v) <= judge_.bytes(host) && location(v).extent_bytes <= location(host).extent_bytes, v,
           "is larger than the input it takes");
    if (identity) expect(judge_.bytes(v) == judge_.bytes(host) && mine.dtype == theirs.dtype, v, "is not an identity of its input");
    expect(std::count_if(node.outputs.begin(), node.outputs.end(),
                         [&](ValueId other) { return other != kNoValue && location(other).with == host; }) == 1,
           v, "takes an input that another output has taken");
  }

  void check_view(const GraphNode& node, std::uint32_t o, ValueId v) {
    if (!check_host(node, v)) return;
    const ValueId host = location(v).with;
    const bool offered = std::any_of(node.views.begin(), node.views.end(), [&](const ViewOption& option) {
      return option.of_input && option.output == o && node.inputs[option.input] == host && !Judge::ignores(node, option.input) &&
             location(v).offset - location(host).offset == option.offset_bytes && location(v).offset >= location(host).offset;
    });
    expect(offered, v, "is a view that its node does not offer there");
  }

  void check_joined(const GraphNode& node, std::uint32_t o, ValueId v) {
    expect(location(v).with == kNoValue, v, "has bytes of its own and names another");
    const bool any = std::any_of(node.views.begin(), node.views.end(),
                                 [&](const ViewOption& option) { return option.output == o && is_joined(judge_, node, option); });
    expect(any, v, "is said to hold inputs, and holds none");
    expect(judge_.facts[v].used, v, "holds inputs, though unused");
  }

  // Takes effect for later nodes: what this node does to its inputs is for check_run to find out.
  void mark_ranges(const GraphNode& node) {
    for (const ValueId v : node.outputs)
      if (v != kNoValue && location(v).reuse == Reuse::view) inside_larger_[v] = true;
    for (const ViewOption& option : node.views)
      if (is_joined(judge_, node, option)) inside_larger_[node.inputs[option.input]] = true;
  }

  Judge& judge_;
  std::vector<bool> inside_larger_;  // views, and inputs that were joined
};

}  // namespace

bool is_joined(const Judge& judge, const GraphNode& node, const ViewOption& option) {
  if (option.of_input || Judge::ignores(node, option.input)) return false;
  const ValueId whole = node.outputs[option.output];
  const ValueId part = node.inputs[option.input];
  const ValueLocation& outer = judge.plan.locations[whole];
  const ValueLocation& inner = judge.plan.locations[part];
  return outer.reuse == Reuse::joined && inner.planned() && judge.graph.values[whole].device == judge.graph.values[part].device &&
         inner.extent_bytes != 0 && inner.offset >= outer.offset && inner.offset - outer.offset == option.offset_bytes;
}

void check_reuse(Judge& judge) {
  Claims claims(judge);
  for (NodeId step = judge.plan.nodes.begin; step < judge.plan.nodes.end; ++step) claims.check(judge.node_at(step));
}

}  // namespace berth::internal::plan::verify

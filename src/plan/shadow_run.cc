// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/random.h"
#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "berth/copy/copy.h"
#include "berth/plan/placement.h"
#include "plan/kept.h"
#include "plan/lives.h"

namespace berth {

using namespace internal;
using namespace internal::plan;

namespace {

using Bytes = std::vector<unsigned char>;

// The pattern that a node writes into a value: pseudo-random bytes seeded by the value.
Bytes stamp(ValueId v, std::size_t bytes) {
  Random random(0x5ead0f ^ (std::uint64_t{v} << 20));
  Bytes out(bytes);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = random.next();
    for (std::size_t k = 0; k < 8 && i + k < bytes; ++k) out[i + k] = static_cast<unsigned char>(word >> (8 * k));
  }
  return out;
}

[[noreturn]] void refuse_order(std::string why) {
  throw ArgumentError(ErrorCode::invalid_argument, {"a shadow run in another order", std::move(why),
                                                    "give every node of the plan once, each after those whose values it reads"});
}

// Validates that the order is topological and complete. Whether it also respects the plan's edges is for the
// run to show.
void require_order(const Plan& plan, const std::vector<NodeId>& order) {
  const NodeRange& nodes = plan.tables().nodes;
  const Graph& graph = plan.graph();
  if (order.size() != nodes.end - nodes.begin) refuse_order(text::join("it has ", order.size(), " nodes of ", nodes.end - nodes.begin));
  std::vector<bool> done(nodes.end, false);
  std::vector<bool> written(graph.values.size(), false);
  for (ValueId v = 0; v < written.size(); ++v) written[v] = plan.location(v).reuse == Reuse::kept;
  for (const NodeId n : order) {
    if (n < nodes.begin || n >= nodes.end || done[n]) refuse_order(text::join("node ", n, " is there twice, or is not of the plan"));
    done[n] = true;
    for (std::size_t i = 0; i < graph.nodes[n].inputs.size(); ++i) {
      const ValueId v = graph.nodes[n].inputs[i];
      if (v != kNoValue && plan.location(v).planned() && !written[v] && !plan::is_ignored(graph.nodes[n], i))
        refuse_order(text::join(graph.describe_node(n), " reads ", graph.describe_value(v), " before it is written"));
    }
    for (const ValueId v : graph.nodes[n].outputs)
      if (v != kNoValue) written[v] = true;
  }
}

class ShadowRun {
 public:
  explicit ShadowRun(const Graph& graph) : graph_(graph), expected_(graph.values.size()), home_(graph.values.size(), nullptr) {}

  void fill_kept(const Placement& placement) {
    enter(placement);
    for (const KeptRange& range : kept_ranges(graph_, kept_in(plan().tables()))) {
      const Bytes pattern = stamp(range.values.front(), range.end - range.begin);
      for (std::size_t i = 0; i < range.values.size(); ++i) {
        const ValueId v = range.values[i];
        const auto begin = pattern.begin() + static_cast<std::ptrdiff_t>(range.offsets[i]);
        expected_[v].assign(begin, begin + static_cast<std::ptrdiff_t>(size_of(v)));
        put(v, 0, size_of(v));
      }
    }
  }

  void run(const Placement& placement, const std::vector<NodeId>& order) {
    enter(placement);
    for (const NodeId n : order) {
      const GraphNode& node = graph_.nodes[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId v = node.inputs[i];
        if (v != kNoValue && !plan::is_ignored(node, i) && home_[v] != nullptr) read(v, graph_.describe_node(n));
      }
      for (std::uint32_t o = 0; o < node.outputs.size(); ++o)
        if (const ValueId v = node.outputs[o]; v != kNoValue && plan().location(v).planned()) write(node, o, v);
      ++report_.nodes;
    }
    const std::vector<bool> survive = survivors();
    for (ValueId v = 0; v < expected_.size(); ++v)
      if (home_[v] != nullptr && survive[v]) read(v, "the caller");
  }

  ShadowReport report() && { return std::move(report_); }

 private:
  const Plan& plan() const { return placement_->plan(); }

  void enter(const Placement& placement) {
    placement_ = &placement;
    for (ValueId v = 0; v < home_.size(); ++v)
      if (plan().location(v).planned()) home_[v] = placement_;
  }

  // Values that are read after the last node of the plan.
  std::vector<bool> survivors() const {
    std::vector<bool> out(graph_.values.size());
    for (ValueId v = 0; v < out.size(); ++v) out[v] = graph_.values[v].output;
    for (NodeId n = plan().tables().nodes.end; n < graph_.nodes.size(); ++n)
      for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i)
        if (const ValueId v = graph_.nodes[n].inputs[i]; v != kNoValue && !plan::is_ignored(graph_.nodes[n], i)) out[v] = true;
    return out;
  }

  std::size_t size_of(ValueId v) const { return *graph_.values[v].size_bytes(); }

  void write(const GraphNode& node, std::uint32_t o, ValueId v) {
    const ValueLocation& location = plan().location(v);
    expected_[v] = stamp(v, size_of(v));
    if (location.reuse == Reuse::identity) {
      expected_[v] = expected_[location.with];
    } else if (location.reuse == Reuse::view) {
      const auto begin =
          expected_[location.with].begin() + static_cast<std::ptrdiff_t>(location.offset - plan().location(location.with).offset);
      expected_[v].assign(begin, begin + static_cast<std::ptrdiff_t>(size_of(v)));
    } else if (location.reuse == Reuse::joined) {
      write_joined(node, o, v);
    } else {
      put(v, 0, size_of(v));
    }
  }

  // Inputs that are already in the output are not copied: they must be intact.
  void write_joined(const GraphNode& node, std::uint32_t o, ValueId v) {
    std::vector<std::pair<std::size_t, std::size_t>> kept;
    for (const ViewOption& option : node.views) {
      const ValueId input = node.inputs[option.input];
      if (option.of_input || option.output != o || plan::is_ignored(node, option.input) || !plan().location(input).planned()) continue;
      if (plan().location(input).offset != plan().location(v).offset + option.offset_bytes ||
          plan().location(input).buffer != plan().location(v).buffer)
        continue;
      std::copy(expected_[input].begin(), expected_[input].end(), expected_[v].begin() + static_cast<std::ptrdiff_t>(option.offset_bytes));
      kept.emplace_back(option.offset_bytes, option.offset_bytes + size_of(input));
    }
    std::sort(kept.begin(), kept.end());
    std::size_t begin = 0;
    for (const auto& [low, high] : kept) {
      if (begin < low) put(v, begin, low);
      begin = std::max(begin, high);
    }
    put(v, begin, size_of(v));
  }

  void put(ValueId v, std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    const Placement::Spot spot = home_[v]->spot(v);
    copy_bytes(static_cast<unsigned char*>(spot.buffer.data()) + spot.offset + begin, spot.buffer.device(), expected_[v].data() + begin,
               "cpu", end - begin);
    report_.bytes_written += end - begin;
  }

  void read(ValueId v, const std::string& reader) {
    found_.resize(expected_[v].size());
    if (found_.empty()) return;
    const Placement::Spot spot = home_[v]->spot(v);
    copy_bytes(found_.data(), "cpu", static_cast<const unsigned char*>(spot.buffer.data()) + spot.offset, spot.buffer.device(),
               found_.size());
    report_.bytes_read += found_.size();
    const auto wrong = std::mismatch(found_.begin(), found_.end(), expected_[v].begin());
    if (wrong.first == found_.end() || report_.wrong.size() == 10) return;
    report_.wrong.push_back(
        text::join(reader, " reads ", graph_.describe_value(v), " and finds other bytes from ", wrong.first - found_.begin(), " on"));
  }

  const Graph& graph_;
  const Placement* placement_ = nullptr;  // of the range that runs
  std::vector<Bytes> expected_;           // of each value, once it is written
  std::vector<const Placement*> home_;    // the last that has a location for the value
  Bytes found_;
  ShadowReport report_;
};

}  // namespace

ShadowReport shadow_run(const Placement& placement, const std::vector<NodeId>& order) {
  const Plan& plan = placement.plan();
  if (!order.empty()) require_order(plan, order);
  ShadowRun shadow(plan.graph());
  shadow.fill_kept(placement);
  shadow.run(placement, order.empty() ? plan.nodes_in_order() : order);
  return std::move(shadow).report();
}

ShadowReport shadow_run(std::span<const Placement> placements) {
  if (placements.empty()) return {};
  const Graph& graph = placements.front().plan().graph();
  for (const Placement& one : placements)
    if (&one.plan().graph() != &graph && one.plan().graph() != graph)
      base::refuse("a shadow run of several placements", "their graphs differ", "give placements of ranges of one graph");
  ShadowRun shadow(graph);
  shadow.fill_kept(placements.front());
  for (const Placement& one : placements) shadow.run(one, one.plan().nodes_in_order());
  return std::move(shadow).report();
}

}  // namespace berth

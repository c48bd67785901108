// SPDX-License-Identifier: Apache-2.0
#include "plan/reuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/allowance.h"
#include "berth/base/checked.h"
#include "plan/look_ahead.h"

namespace berth::internal::plan {

namespace {

// A buffer under construction: a node of a union-find forest with offsets. A buffer that was merged into
// another stays as a link to it.
struct Class {
  ValueId owner;              // its first value, whose device and fixed or preferred offset are the buffer's
  std::uint32_t parent;       // itself when it is a root
  std::uint32_t pending = 0;  // remaining reads of its values; in the end the number of the buffer
  NodeId begin = 0;
  NodeId end = 0;
  bool survives = false;  // one of its values is needed after the last node
  bool kept = false;      // its bytes are those of an earlier plan: no more, and nowhere else
  Alignment alignment = {};
  std::size_t bytes = 0;
  std::size_t offset = 0;  // in the parent; of a root that is kept, in its arena
};
static_assert(sizeof(Class) == 40);

// A range of a root.
struct Range {
  std::uint32_t root;
  std::size_t offset;
};

class ReuseFinder {
 public:
  ReuseFinder(const Graph& graph, const std::vector<Life>& lives, const ReuseRules& rules)
      : graph_(graph), lives_(lives), rules_(rules), values_(graph.values.size()), is_part_(graph.values.size(), false) {
    std::size_t most = 0;
    for (const Life& life : lives) most += life.placed() ? 1U : 0U;
    classes_.reserve(most);
  }

  // REQUIRES: no node was seen yet.
  void keep(const KeptRange& range) {
    const auto c = static_cast<std::uint32_t>(classes_.size());
    Class& root = classes_.emplace_back(Class{.owner = range.values.front(),
                                              .parent = c,
                                              .begin = UINT32_MAX,
                                              .kept = true,
                                              .bytes = range.end - range.begin,
                                              .offset = range.begin});
    for (std::size_t i = 0; i < range.values.size(); ++i) {
      const ValueId v = range.values[i];
      const Life& life = lives_[v];
      root.pending += life.reads;
      root.begin = std::min(root.begin, life.begin);
      root.end = std::max(root.end, life.end);
      root.survives |= life.survives;
      values_[v] = {.offset = range.offsets[i], .buffer = c, .reuse = Reuse::kept};
      is_part_[v] = range.values.size() > 1;
    }
  }

  void step(NodeId n) {
    const GraphNode& node = graph_.nodes[n];
    look_ahead(graph_, n, lives_, values_, graph_.values);
    node_ = n;
    if (rules_.inplace) {
      for (const ViewOption& option : node.views)
        if (option.of_input && rules_.views) try_view(node, option);
      if (!ignores_everything(node))
        for (const InplaceOption& option : node.inplace) try_inplace(node, option);
    }
    for (const ValueId v : node.outputs)
      if (v != kNoValue && lives_[v].placed() && !done(v)) give_own(v);
    joined_.clear();
    if (rules_.inplace && rules_.joins)
      for (const ViewOption& option : node.views)
        if (!option.of_input) try_join(node, option);
    finish_reads(node);
  }

  ReuseResult result() && {
    ReuseResult out{std::move(values_), {}, {}, took_};
    std::size_t roots = 0;
    for (std::uint32_t c = 0; c < classes_.size(); ++c) {
      classes_[c].pending = kNoBuffer;
      roots += classes_[c].parent == c ? 1U : 0U;
    }
    out.buffers.reserve(roots);
    for (ValueInBuffer& value : out.values) {
      if (value.buffer == kNoBuffer) continue;
      const Range range = find(value.buffer);
      Class& root = classes_[range.root];
      if (root.pending == kNoBuffer) {
        root.pending = static_cast<std::uint32_t>(out.buffers.size());
        add_buffer(root, out);
      }
      value.buffer = root.pending;
      value.offset += range.offset;
    }
    return out;
  }

 private:
  bool done(ValueId v) const { return values_[v].reuse != Reuse::none; }

  std::optional<std::size_t> fixed(const Class& one) const { return one.kept ? one.offset : graph_.values[one.owner].fixed_offset; }

  void add_buffer(const Class& root, ReuseResult& out) const {
    const GraphValue& owner = graph_.values[root.owner];
    if (owner.preferred_offset && !root.kept)
      out.preferences.push_back({static_cast<std::uint32_t>(out.buffers.size()), *owner.preferred_offset});
    out.buffers.push_back({.bytes = checked_align_up(root.bytes, root.alignment, "the bytes of a buffer with its alignment"),
                           .begin = root.begin,
                           .end = root.end,
                           .alignment = root.alignment,
                           .device = static_cast<std::uint16_t>(owner.device),
                           .fixed = fixed(root)});
  }

  static bool ignores_everything(const GraphNode& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!is_ignored(node, i)) return false;
    return true;
  }

  // The root, and the offset of the class in it. Path compression: every class on the path points to the root
  // afterwards.
  Range find(std::uint32_t c) {
    Range range{c, 0};
    while (classes_[range.root].parent != range.root) {
      range.offset += classes_[range.root].offset;
      range.root = classes_[range.root].parent;
    }
    for (std::size_t offset = range.offset; classes_[c].parent != c && classes_[c].parent != range.root;) {
      Class& step = classes_[c];
      c = std::exchange(step.parent, range.root);
      offset -= std::exchange(step.offset, offset);
    }
    return range;
  }

  Range range_of(ValueId v) {
    Range range = find(values_[v].buffer);
    range.offset += values_[v].offset;
    return range;
  }

  Class& root_of(ValueId v) { return classes_[find(values_[v].buffer).root]; }

  void give_own(ValueId v) {
    const Life& life = lives_[v];
    const auto c = static_cast<std::uint32_t>(classes_.size());
    classes_.push_back({.owner = v,
                        .parent = c,
                        .pending = life.reads,
                        .begin = life.begin,
                        .end = life.end,
                        .survives = life.survives,
                        .alignment = life.alignment,
                        .bytes = life.extent_bytes()});
    values_[v] = {.buffer = c, .reuse = Reuse::own};
    if (rules_.precedes) users_.push_back({node_});
  }

  // Both are planned on one device, and the newcomer has no fixed offset of its own.
  bool may_reuse(ValueId newcomer, ValueId host) const {
    return newcomer != host && lives_[newcomer].placed() && lives_[host].placed() && done(host) && !graph_.values[newcomer].fixed_offset &&
           graph_.values[newcomer].device == graph_.values[host].device && lives_[newcomer].bytes != 0;
  }

  // Whether an offset in a root suits an alignment, which the root then takes over.
  bool can_align(const Class& root, std::size_t offset, std::size_t alignment) const {
    return offset % alignment == 0 && fixed(root).value_or(0) % alignment == 0;
  }

  void enter(ValueId v, ValueId host, std::size_t offset, Reuse reuse) {
    took_.inplace = true;
    const Range range = range_of(host);
    Class& root = classes_[range.root];
    const Life& life = lives_[v];
    root.pending += life.reads;
    root.survives |= life.survives;
    root.begin = std::min(root.begin, life.begin);
    root.end = std::max(root.end, life.end);
    if (!root.kept) root.alignment = std::max(root.alignment, life.alignment);
    values_[v] = {.offset = range.offset + offset, .with = host, .buffer = range.root, .reuse = reuse};
    if (rules_.precedes && reuse == Reuse::in_place) users_[range.root] = {node_};  // after all others
  }

  void try_view(const GraphNode& node, const ViewOption& option) {
    const ValueId part = node.outputs[option.output];
    const ValueId whole = node.inputs[option.input];
    if (done(part) || !may_reuse(part, whole) || is_ignored(node, option.input) || !lives_[part].used()) return;
    const Range range = range_of(whole);
    const std::size_t offset = range.offset + option.offset_bytes;
    const Class& root = classes_[range.root];
    if (!can_align(root, offset, lives_[part].alignment)) return;
    if (root.kept && !fits(offset, lives_[part].extent_bytes(), root.bytes)) return;  // any other grows by the padding
    took_.views = true;
    enter(part, whole, option.offset_bytes, Reuse::view);
    is_part_[part] = true;
  }

  void try_inplace(const GraphNode& node, const InplaceOption& option) {
    const ValueId output = node.outputs[option.output];
    const ValueId input = node.inputs[option.input];
    if (done(output) || !may_reuse(output, input) || is_ignored(node, option.input) || !lives_[output].used()) return;
    if (is_range(input) || is_taken(node, input) || !widths_agree(output, input)) return;
    if (!can_align(root_of(input), range_of(input).offset, lives_[output].alignment)) return;
    const bool equal = lives_[output].bytes == lives_[input].bytes;
    if (option.identity && equal && graph_.values[output].dtype == graph_.values[input].dtype &&
        lives_[output].extent_bytes() <= lives_[input].extent_bytes())
      return enter(output, input, 0, Reuse::identity);
    if (lives_[output].bytes > lives_[input].bytes || lives_[output].extent_bytes() > lives_[input].extent_bytes()) return;
    if (!dies_at(node, input) || (!equal && !rules_.smaller)) return;
    took_.smaller |= !equal;
    enter(output, input, 0, Reuse::in_place);
  }

  // Whether a value is a range of something larger: a view, or joined into an output.
  bool is_range(ValueId v) const { return is_part_[v] || classes_[values_[v].buffer].parent != values_[v].buffer; }

  bool widths_agree(ValueId a, ValueId b) const {
    const auto width = [](const GraphValue& value) { return value.dtype ? size_bytes(*value.dtype) : 0; };
    return width(graph_.values[a]) == width(graph_.values[b]);
  }

  bool is_taken(const GraphNode& node, ValueId input) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId v) { return v != kNoValue && values_[v].with == input && done(v); });
  }

  // Whether the last read of anything in the input's buffer is by this node, of this input and at one position:
  // a node that reads it twice, or a view of it, might still need bytes that it has overwritten.
  bool dies_at(const GraphNode& node, ValueId input) {
    const Class& root = root_of(input);
    if (root.survives || root.pending != 1 || !comes_last(root)) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == input && !is_ignored(node, i)) return true;
    return false;
  }

  // Whether all others that use a buffer end before this node begins.
  bool comes_last(const Class& root) const {
    if (!rules_.precedes) return true;
    const std::vector<NodeId>& users = users_[static_cast<std::size_t>(&root - classes_.data())];
    return std::ranges::all_of(users, [&](NodeId user) { return user == node_ || rules_.precedes(user, node_); });
  }

  // The input's whole buffer becomes a range of the output's.
  void try_join(const GraphNode& node, const ViewOption& option) {
    const ValueId whole = node.outputs[option.output];
    const ValueId part = node.inputs[option.input];
    if (!lives_[whole].placed() || !may_reuse(part, whole) || !done(part) || is_ignored(node, option.input) || !lives_[whole].used())
      return;
    if (values_[whole].reuse != Reuse::own && values_[whole].reuse != Reuse::joined) return;
    if (is_range(part) || is_taken(node, part)) return;  // another output may have overwritten it
    const Range from = range_of(part);
    const Range to = range_of(whole);
    Class& inner = classes_[from.root];
    Class& outer = classes_[to.root];
    if (from.root == to.root || from.offset != 0 || inner.bytes != lives_[part].extent_bytes()) return;
    if (fixed(inner) || graph_.values[inner.owner].preferred_offset || fixed(outer) ||
        !can_align(outer, option.offset_bytes, inner.alignment))
      return;
    // Its padding may overlap the output's padding, not its bytes.
    if (lives_[part].extent_bytes() != lives_[part].bytes && option.offset_bytes + lives_[part].bytes != lives_[whole].bytes) return;
    if (!fits(option.offset_bytes, inner.bytes, outer.bytes) || !is_free(whole, option.offset_bytes, inner.bytes)) return;
    joined_[whole].emplace(option.offset_bytes, option.offset_bytes + inner.bytes);
    if (rules_.precedes) users_[to.root].insert(users_[to.root].end(), users_[from.root].begin(), users_[from.root].end());
    inner.parent = to.root;
    inner.offset = option.offset_bytes;
    outer.pending += inner.pending;
    outer.survives |= inner.survives;
    outer.begin = std::min(outer.begin, inner.begin);
    outer.end = std::max(outer.end, inner.end);
    outer.alignment = std::max(outer.alignment, inner.alignment);
    values_[whole].reuse = Reuse::joined;
    took_.joins = true;
  }

  // Whether no input that is already joined overlaps this range.
  bool is_free(ValueId whole, std::size_t offset, std::size_t bytes) {
    const std::map<std::size_t, std::size_t>& taken = joined_[whole];
    const auto above = taken.lower_bound(offset);
    return (above == taken.end() || above->first - offset >= bytes) && (above == taken.begin() || std::prev(above)->second <= offset);
  }

  void finish_reads(const GraphNode& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue || !done(v) || is_ignored(node, i)) continue;
      Class& root = root_of(v);
      --root.pending;
      if (rules_.precedes) users_[static_cast<std::size_t>(&root - classes_.data())].push_back(node_);
    }
  }

  const Graph& graph_;
  const std::vector<Life>& lives_;
  const ReuseRules& rules_;
  std::vector<ValueInBuffer> values_;  // `buffer` is a class, `offset` is relative to it
  std::vector<bool> is_part_;          // values that are views
  std::vector<Class> classes_;
  std::vector<std::vector<NodeId>> users_;  // of each class, in a parallel plan: since its bytes were last overwritten
  NodeId node_ = 0;                         // the current one
  // For the current node: the ranges of inputs in each output, begin → end.
  std::map<ValueId, std::map<std::size_t, std::size_t>> joined_;
  ReuseRules took_ = {false, false, false, false};
};

}  // namespace

ReuseResult find_reuse(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, const ReuseRules& rules,
                       std::span<const NodeId> order, std::span<const KeptRange> kept) {
  ReuseFinder finder(graph, lives, rules);
  for (const KeptRange& range : kept) finder.keep(range);
  for (NodeId n = nodes.begin; n < nodes.end; ++n) {
    base::checkpoint();
    finder.step(node_at(nodes, order, n));
  }
  return std::move(finder).result();
}

}  // namespace berth::internal::plan

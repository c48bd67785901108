// SPDX-License-Identifier: Apache-2.0
#include "plan/parallel/conflicts.h"

#include <algorithm>
#include <array>

#include "base/allowance.h"

namespace berth::internal::plan::parallel {

namespace {

// Keeps those that no other precedes, or that precede no other.
void keep_outer(std::vector<NodeId>& nodes, bool first, const HappensBefore& reach) {
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<NodeId> kept;
  if (!first) std::ranges::reverse(nodes);  // only a lower node can precede, only a higher one can follow
  for (const NodeId n : nodes) {
    const bool is_inner =
        std::ranges::any_of(kept, [&](NodeId other) { return first ? reach.precedes(other, n) : reach.precedes(n, other); });
    if (!is_inner) kept.push_back(n);
  }
  nodes = std::move(kept);
}

// The last uses of all members, for a quick look at each. Most have one.
class LastUses {
 public:
  LastUses(const std::vector<std::uint32_t>& members, const std::vector<BufferUses>& uses, NodeId first) : first_(first) {
    for (const std::uint32_t i : members) {
      const bool is_one = !uses[i].survives && uses[i].last.size() == 1;
      one_.push_back(is_one ? uses[i].last.front() - first : kNotOne);
      all_.push_back(&uses[i]);
    }
  }

  // Whether the last uses of a member are among these nodes.
  bool are_in(const std::vector<std::uint64_t>& nodes, std::size_t member) const {
    const auto has = [&](NodeId n) { return (nodes[n / 64] >> (n % 64) & 1) != 0; };
    if (one_[member] != kNotOne) return has(one_[member]);
    return !all_[member]->survives && std::ranges::all_of(all_[member]->last, [&](NodeId n) { return has(n - first_); });
  }

 private:
  static constexpr NodeId kNotOne = UINT32_MAX;

  NodeId first_;
  std::vector<NodeId> one_;
  std::vector<const BufferUses*> all_;
};

using Square = std::array<std::uint64_t, 64>;

// Exchanges rows and columns of 64 by 64 bits: halves, then quarters, down to single bits.
void transpose(Square& square) {
  std::uint64_t mask = 0x00000000FFFFFFFF;
  for (unsigned width = 32; width != 0; width /= 2, mask ^= mask << width)
    for (unsigned row = 0; row < 64; row = (row + width + 1) & ~width) {
      const std::uint64_t change = (square[row] >> width ^ square[row + width]) & mask;
      square[row] ^= change << width;
      square[row + width] ^= change;
    }
}

// Completes rows of which each has the bits of earlier rows alone.
void mirror(std::vector<std::vector<std::uint64_t>>& rows) {
  const std::size_t words = (rows.size() + 63) / 64;
  for (std::size_t down = 0; down < words; ++down)
    for (std::size_t across = 0; across <= down; ++across) {
      const std::size_t count = std::min<std::size_t>(64, rows.size() - 64 * down);
      Square square = {};
      for (std::size_t i = 0; i < count; ++i) square[i] = rows[64 * down + i][across];
      transpose(square);
      for (std::size_t i = 0; i < 64 && 64 * across + i < rows.size(); ++i) rows[64 * across + i][down] |= square[i];
    }
}

}  // namespace

std::vector<BufferUses> find_uses(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, const ReuseResult& reuse,
                                  const HappensBefore& reach) {
  std::vector<BufferUses> uses(reuse.buffers.size());
  const auto see = [&](ValueId v, NodeId n) {
    if (v == kNoValue || reuse.values[v].buffer == kNoBuffer) return;
    BufferUses& its = uses[reuse.values[v].buffer];
    its.survives |= lives[v].survives;
    its.last.push_back(n);
  };
  for (NodeId n = nodes.begin; n < nodes.end; ++n) {
    const GraphNode& node = graph.nodes[n];
    base::checkpoint();
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!is_ignored(node, i)) see(node.inputs[i], n);
    for (const ValueId v : node.outputs) see(v, n);
  }
  for (BufferUses& one : uses) {
    one.first = one.last;
    keep_outer(one.first, true, reach);
    keep_outer(one.last, false, reach);
  }
  return uses;
}

Conflicts::Conflicts(const std::vector<PackBuffer>& buffers, const std::vector<BufferUses>& uses, std::uint32_t device,
                     const HappensBefore& reach) {
  for (std::uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].device == device && buffers[i].bytes != 0) members_.push_back(i);
  std::ranges::stable_sort(members_, {}, [&](std::uint32_t i) { return buffers[i].begin; });
  rows_.assign(members_.size(), std::vector<std::uint64_t>((members_.size() + 63) / 64));
  const LastUses last(members_, uses, reach.begin());
  for (std::size_t b = 0; b < members_.size(); ++b) {
    base::checkpoint_now();
    const std::vector<std::uint64_t> earlier = reach.before_all(uses[members_[b]].first);
    for (std::size_t a = 0; a < b; ++a) rows_[b][a / 64] |= std::uint64_t{!last.are_in(earlier, a)} << (a % 64);
  }
  mirror(rows_);
}

}  // namespace berth::internal::plan::parallel

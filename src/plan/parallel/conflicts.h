// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/parallel/reach.h"
#include "plan/reuse.h"

// Which buffers may share bytes when nodes run at once: those of which the one is used for the last time, by every
// order of the nodes, before the other is used at all.
namespace berth::internal::plan::parallel {

// The nodes that use a buffer, without those between others: what precedes all of `first` precedes every use.
struct BufferUses {
  std::vector<NodeId> first = {};
  std::vector<NodeId> last = {};
  bool survives = false;  // no use is the last
};

// Of each buffer. REQUIRES: `lives` and `reuse` are those of the range.
std::vector<BufferUses> find_uses(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, const ReuseResult& reuse,
                                  const HappensBefore& reach);

// The buffers of one device that have bytes, by their first use, and a bit for each pair of them.
class Conflicts {
 public:
  Conflicts(const std::vector<PackBuffer>& buffers, const std::vector<BufferUses>& uses, std::uint32_t device, const HappensBefore& reach);

  std::size_t size() const noexcept { return members_.size(); }
  std::uint32_t buffer(std::size_t i) const noexcept { return members_[i]; }  // its number
  const std::vector<std::uint64_t>& row(std::size_t i) const noexcept { return rows_[i]; }
  bool has(std::size_t a, std::size_t b) const noexcept { return (rows_[a][b / 64] >> (b % 64) & 1) != 0; }

 private:
  std::vector<std::uint32_t> members_;
  std::vector<std::vector<std::uint64_t>> rows_;
};

// Buffers that conflict with one another, all of them pairwise: together they are a lower bound of the arena.
struct Antichain {
  std::vector<std::uint32_t> buffers = {};  // their numbers
  std::size_t bytes = 0;
  bool is_heaviest = false;  // none is heavier, proved
};

// The heaviest such set, by a maximum flow: it is as heavy as the lightest cover of all buffers by chains. Where
// the flow takes too many steps, the heaviest set that uses one node.
Antichain heaviest_antichain(const Conflicts& conflicts, const std::vector<PackBuffer>& buffers);

}  // namespace berth::internal::plan::parallel

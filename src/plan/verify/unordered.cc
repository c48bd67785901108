// SPDX-License-Identifier: Apache-2.0
#include "plan/verify/unordered.h"

#include <algorithm>

#include "base/allowance.h"
#include "plan/verify/order.h"

namespace berth::internal::plan::verify {

namespace {

constexpr std::size_t kMostBuffers = std::size_t{1} << 14;  // of a proof, so that all pairs of them are soon looked at
constexpr std::size_t kMostPairs = std::size_t{1} << 20;    // of nodes, at a time

struct Users {
  std::vector<NodeId> nodes = {};  // writers and readers, the lower first, each once
  bool survives = false;
};

std::vector<Users> users_of(const Judge& judge, const std::vector<std::uint32_t>& buffers) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<std::uint32_t> position(judge.facts.size() + 1, kNone);  // of a buffer in the list; there are no more than values
  for (std::uint32_t i = 0; i < buffers.size(); ++i) position[buffers[i]] = i;
  std::vector<Users> users(buffers.size());
  const auto see = [&](ValueId v, NodeId n) {
    if (v == kNoValue || !judge.plan.locations[v].planned()) return;
    const std::uint32_t buffer = judge.plan.locations[v].buffer;
    if (buffer >= position.size() || position[buffer] == kNone) return;
    Users& its = users[position[buffer]];
    its.survives |= judge.facts[v].survives;
    if (its.nodes.empty() || its.nodes.back() != n) its.nodes.push_back(n);
  };
  for (NodeId n = judge.plan.nodes.begin; n < judge.plan.nodes.end; ++n) {
    const GraphNode& node = judge.graph.nodes[n];
    base::checkpoint();
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!Judge::ignores(node, i)) see(node.inputs[i], n);
    for (const ValueId v : node.outputs) see(v, n);
  }
  return users;
}

// Looks for two buffers of which one surely ends before the other begins.
class OrderedPairs {
 public:
  explicit OrderedPairs(const Judge& judge) : order_(judge.graph, judge.plan.nodes, judge.plan.edges) {}

  // Whether two were found, of those that have been looked at so far.
  bool found() const noexcept { return found_; }

  void see(const Users& earlier, const Users& later) {
    for (const NodeId before : earlier.nodes)
      for (const NodeId after : later.nodes) pairs_.push_back({before, after});
    ends_.push_back(pairs_.size());
    if (pairs_.size() >= kMostPairs) look();
  }

  void look() {
    base::checkpoint_now();
    const std::vector<bool> implied = order_.implied(pairs_);
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      bool is_over = true;
      for (std::size_t i = begin; i < end; ++i) is_over = is_over && implied[i];
      found_ = found_ || is_over;
      begin = end;
    }
    pairs_.clear();
    ends_.clear();
  }

 private:
  const Order order_;
  std::vector<PlanEdge> pairs_;
  std::vector<std::size_t> ends_;  // of the pairs of nodes for each pair of buffers
  bool found_ = false;
};

}  // namespace

bool are_unordered(const Judge& judge, const std::vector<std::uint32_t>& buffers) {
  if (buffers.size() > kMostBuffers) return false;
  for (const std::uint32_t buffer : buffers)
    if (buffer > judge.facts.size()) return false;
  const std::vector<Users> users = users_of(judge, buffers);
  OrderedPairs ordered(judge);
  for (std::size_t a = 0; a < users.size(); ++a) {
    if (users[a].nodes.empty() || ordered.found()) return false;
    for (std::size_t b = 0; b < users.size(); ++b) {
      // Where the last use has the higher number, some use is not before some other.
      const bool may_be = a != b && !users[a].survives && !users[b].nodes.empty() && users[a].nodes.back() < users[b].nodes.front();
      if (may_be) ordered.see(users[a], users[b]);
    }
  }
  ordered.look();
  return !ordered.found();
}

}  // namespace berth::internal::plan::verify

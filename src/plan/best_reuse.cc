// SPDX-License-Identifier: Apache-2.0
#include "plan/best_reuse.h"

#include <numeric>
#include <utility>

#include "plan/portfolio.h"

namespace berth::internal::plan {

namespace {

// The sum over all devices, by which rules are compared.
std::size_t bound_of(const ReuseResult& reuse, std::size_t devices) {
  const std::vector<std::size_t> bounds = bounds_of(reuse, devices);
  return std::accumulate(bounds.begin(), bounds.end(), std::size_t{0});
}

}  // namespace

std::vector<std::size_t> bounds_of(const ReuseResult& reuse, std::size_t devices) {
  const Portfolio portfolio(reuse.buffers, devices);
  std::vector<std::size_t> bounds;
  for (std::size_t device = 0; device < devices; ++device) bounds.push_back(portfolio.lower_bound_bytes(device));
  return bounds;
}

ReuseResult find_best_reuse(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool inplace,
                            const std::vector<NodeId>& order, std::span<const KeptRange> kept) {
  ReuseResult best = find_reuse(graph, nodes, lives, {.inplace = inplace}, order, kept);
  const ReuseRules took = best.took;
  if (!took.views && !took.joins && !took.smaller) return best;
  std::size_t least = bound_of(best, graph.devices.size());
  for (unsigned without = 1; without < 8; ++without) {
    const ReuseRules rules{.views = (without & 1) == 0, .joins = (without & 2) == 0, .smaller = (without & 4) == 0};
    if ((!rules.views && !took.views) || (!rules.joins && !took.joins) || (!rules.smaller && !took.smaller)) continue;
    ReuseResult other = find_reuse(graph, nodes, lives, rules, order, kept);
    if (const std::size_t bound = bound_of(other, graph.devices.size()); bound < least) {
      least = bound;
      best = std::move(other);
    }
  }
  return best;
}

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#include "plan/parallel/apart.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/allowance.h"
#include "plan/best_reuse.h"

namespace berth::internal::plan::parallel {

namespace {

constexpr std::size_t kMostMembers = 1024;  // of an antichain: the heaviest, so that pairs of them are few

struct Offer {
  std::uint32_t earlier;
  std::uint32_t later;
  std::vector<PlanEdge> edges;
  double saves_each;     // bytes for each edge, at best
  std::uint64_t growth;  // of the longest path
  bool is_of_one_colour;
};

class Seller {
 public:
  explicit Seller(const EdgeMarket& market) : market_(market), buffers_(market.apart.reuse.buffers) {}

  // Of one device.
  std::vector<PlanEdge> choose(const Antichain& antichain, std::size_t most) {
    std::vector<Offer> offers = find_offers(heaviest(antichain));
    double best = 0;
    for (const Offer& one : offers) best = std::max(best, one.saves_each);
    const auto key = [&](const Offer& one) {
      return std::tuple(2 * one.saves_each < best, one.growth, -one.saves_each, !one.is_of_one_colour);
    };
    std::ranges::stable_sort(offers, {}, key);
    std::vector<PlanEdge> chosen;
    // Each has one after it and one before it, so that those that are bought at once are chains.
    std::vector<bool> has_next(buffers_.size(), false);
    std::vector<bool> has_previous(buffers_.size(), false);
    for (const Offer& one : offers) {
      if (!chosen.empty() && (has_next[one.earlier] || has_previous[one.later] || chosen.size() + one.edges.size() > most)) continue;
      has_next[one.earlier] = has_previous[one.later] = true;
      chosen.insert(chosen.end(), one.edges.begin(), one.edges.end());
      if (chosen.size() >= most) break;
    }
    return chosen;
  }

 private:
  // By their first use.
  std::vector<std::uint32_t> heaviest(const Antichain& antichain) const {
    std::vector<std::uint32_t> members = antichain.buffers;
    if (members.size() > kMostMembers) {
      std::ranges::stable_sort(members, std::greater<>(), [&](std::uint32_t i) { return buffers_[i].bytes; });
      members.resize(kMostMembers);
    }
    std::ranges::stable_sort(members, {}, [&](std::uint32_t i) { return buffers_[i].begin; });
    return members;
  }

  std::vector<Offer> find_offers(const std::vector<std::uint32_t>& members) const {
    std::vector<Offer> offers;
    for (std::size_t i = 0; i < members.size(); ++i) {
      base::checkpoint_now();
      for (std::size_t j = i + 1; j < members.size(); ++j)
        if (std::optional<std::vector<PlanEdge>> edges = edges_between(members[i], members[j]))
          offers.push_back(price(members[i], members[j], std::move(*edges)));
    }
    return offers;
  }

  // The edges after which the last uses of one come before the first uses of the other. Nothing where the order of
  // the graph has it otherwise.
  std::optional<std::vector<PlanEdge>> edges_between(std::uint32_t earlier, std::uint32_t later) const {
    const BufferUses& from = market_.apart.uses[earlier];
    if (from.survives) return std::nullopt;
    std::vector<PlanEdge> edges;
    for (const NodeId end : from.last)
      for (const NodeId begin : market_.apart.uses[later].first) {
        if (end > begin || (end == begin && !could_be_in_place(begin, earlier, later))) return std::nullopt;
        if (end != begin && !market_.reach.precedes(end, begin)) edges.push_back({end, begin});
      }
    return edges.empty() ? std::nullopt : std::optional(std::move(edges));
  }

  // Whether the node offers to write a value of one buffer in place of a value of the other, which then fits.
  bool could_be_in_place(NodeId n, std::uint32_t input, std::uint32_t output) const {
    const GraphNode& node = market_.graph.nodes[n];
    const auto in = [&](ValueId v, std::uint32_t buffer) { return v != kNoValue && market_.apart.reuse.values[v].buffer == buffer; };
    return buffers_[output].bytes <= buffers_[input].bytes && std::ranges::any_of(node.inplace, [&](const InplaceOption& option) {
             return in(node.outputs[option.output], output) && in(node.inputs[option.input], input);
           });
  }

  Offer price(std::uint32_t earlier, std::uint32_t later, std::vector<PlanEdge> edges) const {
    const auto place = [&](NodeId n) { return n - market_.nodes.begin; };
    Offer offer{earlier, later, std::move(edges), 0, 0, true};
    for (const PlanEdge& edge : offer.edges) {
      // Neither path includes the other's node.
      const std::uint64_t until = market_.paths.until[place(edge.before)];
      const std::uint64_t spare = market_.paths.longest - std::min(market_.paths.longest, until);
      const std::uint64_t from = market_.paths.from[place(edge.after)];
      offer.growth = std::max(offer.growth, from - std::min(from, spare));
      offer.is_of_one_colour &= market_.colours[place(edge.before)] == market_.colours[place(edge.after)];
    }
    offer.saves_each =
        static_cast<double>(std::min(buffers_[earlier].bytes, buffers_[later].bytes)) / static_cast<double>(offer.edges.size());
    return offer;
  }

  const EdgeMarket& market_;
  const std::vector<PackBuffer>& buffers_;
};

}  // namespace

std::size_t Apart::bound_bytes() const {
  return std::accumulate(antichains.begin(), antichains.end(), std::size_t{0},
                         [](std::size_t sum, const Antichain& one) { return sum + one.bytes; });
}

Apart find_apart(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool inplace, const HappensBefore& reach) {
  const ReuseRules rules{.inplace = inplace, .precedes = [&](NodeId a, NodeId b) { return reach.precedes(a, b); }};
  Apart apart{find_reuse(graph, nodes, lives, rules), {}, {}, {}};
  apart.uses = find_uses(graph, nodes, lives, apart.reuse, reach);
  for (std::uint32_t device = 0; device < graph.devices.size(); ++device) {
    apart.conflicts.emplace_back(apart.reuse.buffers, apart.uses, device, reach);
    apart.antichains.push_back(heaviest_antichain(apart.conflicts.back(), apart.reuse.buffers));
  }
  return apart;
}

std::vector<PlanEdge> choose_edges(const EdgeMarket& market, std::size_t most) {
  std::vector<const Antichain*> by_weight;
  for (const Antichain& one : market.apart.antichains) by_weight.push_back(&one);
  std::ranges::stable_sort(by_weight, std::greater<>(), [](const Antichain* one) { return one->bytes; });
  Seller seller(market);
  for (const Antichain* one : by_weight)
    if (std::vector<PlanEdge> edges = seller.choose(*one, most); !edges.empty()) return edges;
  return {};
}

}  // namespace berth::internal::plan::parallel

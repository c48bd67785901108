// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "berth/plan/parallel.h"
#include "berth/plan/plan.h"
#include "plan/lives.h"
#include "plan/reuse.h"

// The smallest plan of those that need few enough edges, and what each that was smaller than those before has cost.
namespace berth::internal::plan::parallel {

// A packing under some set of edges.
struct PackedApart {
  const ReuseResult* reuse;
  std::vector<std::size_t> offsets;
  std::vector<std::size_t> peaks;  // of each device
  std::vector<PlanSlot> slots = {};
  std::vector<std::uint32_t> slot_of = {};
  std::vector<PlanChunk> chunks = {};
};

std::size_t sum_of(const std::vector<std::size_t>& peaks) noexcept;

// What is planned; it outlives what is found.
struct PlannedRange {
  const Graph& graph;
  const PlanOptions& options;
  NodeRange nodes;
  const std::vector<Life>& lives;
  const std::vector<std::vector<NodeId>>& before;  // of each node
  const std::vector<std::uint32_t>& colours;
  bool is_conservative;
};

class Found {
 public:
  // Nothing is placed. `like` is a plan of the same graph.
  Found(const PlannedRange& range, const PlanTables& like);

  std::size_t bytes() const noexcept { return bytes_; }  // SIZE_MAX: nothing was found
  bool is_better(const std::vector<std::size_t>& peaks) const;

  // Each takes what is better than all before. A packing under `bought` edges, of which it perhaps needs fewer:
  void offer(std::string_view strategy, const PackedApart& packed, const std::vector<PlanEdge>& bought);
  // A whole plan, which has locations, with the edges that it needs when nodes run at once, if they may be bought.
  void offer_whole(PlanTables tables);

  PlanTables& tables() noexcept { return best_; }
  std::vector<EdgeTrade>& trades() noexcept { return trades_; }

 private:
  PlanTables blank(const PlanTables& like) const;
  void place(const PackedApart& packed, PlanTables& tables) const;
  void set_arenas(const PackedApart& packed, PlanTables& tables) const;
  void keep(PlanTables tables);

  const PlannedRange range_;
  const PlanTables blank_;
  PlanTables best_;
  std::size_t bytes_ = SIZE_MAX;
  std::vector<EdgeTrade> trades_;
};

}  // namespace berth::internal::plan::parallel

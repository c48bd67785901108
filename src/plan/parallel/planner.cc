// SPDX-License-Identifier: Apache-2.0
#include "plan/parallel/planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/deadline.h"
#include "base/text.h"
#include "berth/plan/parallel.h"
#include "plan/best_reuse.h"
#include "plan/best_slots.h"
#include "plan/chunks.h"
#include "plan/in_order.h"
#include "plan/order.h"
#include "plan/parallel/apart.h"
#include "plan/parallel/bounds.h"
#include "plan/parallel/found.h"
#include "plan/parallel/pack.h"
#include "plan/plan_maker.h"
#include "plan/plan_options.h"
#include "plan/portfolio.h"
#include "plan/sizes.h"

namespace berth::internal::plan::parallel {

namespace {

using Clock = Patience::Clock;

constexpr std::string_view kApart = "apart";  // the strategy of plans that add no edge …
constexpr std::string_view kEdges = "edges";  // … and of those that do

// Of a time limit: for the plan in order, and until when edges are bought; the rest is for the verifier.
constexpr double kShareInOrder = 0.35;
constexpr double kShareToBuy = 0.65;

// Pairs of buffers that are looked at while edges are bought: minutes of work. Large graphs do not reach it, since each look buys twice
// as many edges as the one before.
constexpr std::uint64_t kMostPairs = std::uint64_t{1} << 35;

std::string edges_in_words(const std::vector<PlanEdge>& edges) {
  return edges.size() == 1 ? std::string("1 edge") : text::join(edges.size(), " edges");
}

class ParallelPlanner {
 public:
  ParallelPlanner(const std::shared_ptr<const Graph>& graph, const PlanOptions& options)
      : graph_(graph),
        options_(options),
        chosen_(check_options(*graph, options)),
        nodes_(planned_nodes(*graph, options)),
        patience_(deadline(kShareToBuy), options.cancel),
        in_order_(plan_nodes_in_order()),
        before_(predecessors(*graph, nodes_)),
        lives_(find_lives(*graph, nodes_, options.alignment)),
        colours_(nodes_.begin == nodes_.end ? std::vector<std::uint32_t>()
                                            : colour_nodes(*graph, nodes_, static_cast<std::uint32_t>(options.parallel))),
        is_by_stages_(nodes_.end - nodes_.begin > kMostNodesOfPairs || wants_chunks(options)),
        found_({*graph, options, nodes_, lives_, before_, colours_, is_by_stages_}, in_order_.tables()) {}

  Plan run() && {
    PlanTables& best = found_.tables();
    if (in_order_.outcome() == PlanOutcome::infeasible) {
      best.outcome = PlanOutcome::infeasible;
    } else if (is_by_stages_) {
      plan_by_stages();
      offer_in_order();
    } else {
      HappensBefore reach(nodes_, before_);
      plan_by_pairs(reach);
      offer_in_order();
      if (best.outcome == PlanOutcome::feasible)
        raise_bounds(*graph_, lives_, before_, best);
      else
        explain_nothing(best);
    }
    if (best.outcome == PlanOutcome::feasible && is_at_bound(best)) best.outcome = PlanOutcome::optimal;
    Plan made = PlanMaker::make(graph_, std::move(best), std::move(lives_), attempts_, 0);
    made = PlanMaker::with_trades(std::move(made), std::move(found_.trades()));
    if (options_.on_better && made.has_locations()) options_.on_better(made);
    return made;
  }

 private:
  std::optional<Clock::time_point> deadline(double share) const {
    return is_limit(options_.time_limit) ? end_of(options_.time_limit * share, start_) : std::nullopt;
  }

  // What nodes in order need is the least that edges can buy, and its offsets are an order to pack in.
  Plan plan_nodes_in_order() const {
    PlanOptions options = options_;
    options.parallel = 1;
    options.most_edges = 0;
    options.on_better = {};
    if (is_limit(options.time_limit)) options.time_limit *= kShareInOrder;
    return plan_in_order(graph_, options, {});
  }

  // ---- What is known of all pairs of nodes.

  void plan_by_pairs(HappensBefore& reach) {
    std::vector<PlanEdge> bought;
    std::uint64_t pairs = 0;
    for (std::size_t batch = 1;; batch = next_batch(batch)) {
      const Apart apart = find_apart(*graph_, nodes_, lives_, options_.inplace, reach);
      if (bought.empty()) {
        check_sizes(*graph_, apart.reuse);
        for (const Antichain& one : apart.antichains) bounds_.push_back(one.bytes);
      }
      if (bought.empty() || apart.bound_bytes() < found_.bytes()) pack(apart, bought);
      pairs += std::uint64_t{1} + apart.reuse.buffers.size() * apart.reuse.buffers.size();
      if (bought.size() >= options_.most_edges || pairs > kMostPairs || patience_.over() || in_order_.peak_bytes() >= found_.bytes())
        return;
      const PathLengths paths = path_lengths(*graph_, nodes_, before_, bought);
      const std::vector<PlanEdge> edges = choose_edges({*graph_, nodes_, apart, reach, paths, colours_}, batch);
      if (edges.empty() || edges.size() > options_.most_edges - bought.size()) return;
      for (const PlanEdge& edge : edges) {
        bought.push_back(edge);
        reach.add(edge);
      }
    }
  }

  // Where looking at all pairs takes long, more edges are bought before the next look.
  std::size_t next_batch(std::size_t batch) const {
    constexpr std::size_t kFew = 2'000;
    return lives_.size() <= kFew ? batch : 2 * batch;
  }

  void pack(const Apart& apart, const std::vector<PlanEdge>& bought) {
    if (!chosen_.offsets.empty()) pack_apart(apart, bought);
    const bool is_fixed = std::ranges::any_of(apart.reuse.buffers, [](const PackBuffer& one) { return one.fixed.has_value(); });
    if (chosen_.slots && !is_fixed && found_.bytes() > apart.bound_bytes()) pack_slots(apart, bought);
  }

  void pack_apart(const Apart& apart, const std::vector<PlanEdge>& bought) {
    const std::string_view strategy = bought.empty() ? kApart : kEdges;
    const Clock::time_point start = Clock::now();
    PackedApart packed{&apart.reuse, std::vector<std::size_t>(apart.reuse.buffers.size(), 0), {}};
    const std::vector<std::size_t> hints = hints_of(apart.reuse);
    for (std::size_t device = 0; device < apart.conflicts.size(); ++device) {
      const Conflicts& conflicts = apart.conflicts[device];
      const std::optional<Packing> packing =
          pack_offsets({apart.reuse.buffers, conflicts, hints, apart.antichains[device].bytes, patience_});
      if (!packing) return add_attempt(strategy, start, {}, "fixed offsets overlap");
      for (std::size_t i = 0; i < conflicts.size(); ++i) packed.offsets[conflicts.buffer(i)] = packing->offsets[conflicts.buffer(i)];
      prefer(apart.reuse, conflicts, *packing, packed.offsets);
      packed.peaks.push_back(peak_of(apart.reuse, conflicts, packed.offsets));
    }
    if (bought.empty() || found_.is_better(packed.peaks)) add_attempt(strategy, start, sum_of(packed.peaks), edges_in_words(bought));
    found_.offer(strategy, packed, bought);
  }

  // A preferred offset is granted where that costs nothing.
  static void prefer(const ReuseResult& reuse, const Conflicts& conflicts, const Packing& packing, std::vector<std::size_t>& offsets) {
    for (const auto& [buffer, wish] : reuse.preferences)
      for (std::size_t i = 0; i < conflicts.size(); ++i) {
        const PackBuffer& one = reuse.buffers[buffer];
        if (conflicts.buffer(i) != buffer || one.fixed || wish % one.alignment != 0 || !fits(wish, one.bytes, packing.peak_bytes)) continue;
        bool is_free = true;
        for (std::size_t j = 0; j < conflicts.size() && is_free; ++j) {
          const std::uint32_t other = conflicts.buffer(j);
          is_free =
              j == i || !conflicts.has(i, j) || offsets[other] >= wish + one.bytes || wish >= offsets[other] + reuse.buffers[other].bytes;
        }
        if (is_free) offsets[buffer] = wish;
      }
  }

  static std::size_t peak_of(const ReuseResult& reuse, const Conflicts& conflicts, const std::vector<std::size_t>& offsets) {
    std::size_t peak = 0;
    for (std::size_t i = 0; i < conflicts.size(); ++i)
      peak = std::max(peak, offsets[conflicts.buffer(i)] + reuse.buffers[conflicts.buffer(i)].bytes);
    return peak;
  }

  // Where the plan in order has the buffers.
  std::vector<std::size_t> hints_of(const ReuseResult& reuse) const {
    if (!in_order_.has_locations()) return {};
    std::vector<std::size_t> hints(reuse.buffers.size(), SIZE_MAX);
    for (ValueId v = 0; v < reuse.values.size(); ++v)
      if (const std::uint32_t buffer = reuse.values[v].buffer; buffer != kNoBuffer)
        hints[buffer] = std::min(hints[buffer], in_order_.tables().locations[v].offset);
    return hints;
  }

  void pack_slots(const Apart& apart, const std::vector<PlanEdge>& bought) {
    const Clock::time_point start = Clock::now();
    const std::vector<PackBuffer>& buffers = apart.reuse.buffers;
    std::vector<std::uint32_t> colours;
    for (const PackBuffer& buffer : buffers) colours.push_back(colours_[buffer.begin - nodes_.begin]);
    const GivenSlots given{options_.slots};
    const int last = options_.match_range.value_or(ranges_for(buffers.size()));
    std::optional<SlotsPacking> best;
    int best_range = 0;
    for (int range = options_.match_range.value_or(1); range <= last && !(best && patience_.over()); ++range) {
      SlotsPacking packing = pack_slots_apart({buffers, given, colours, range}, apart.conflicts);
      if (best && packing.total_bytes >= best->total_bytes) continue;
      best = std::move(packing);
      best_range = range;
    }
    PackedApart packed{&apart.reuse, offsets_in_slots(*best, buffers), peaks_of(*best, graph_->devices.size()), best->slots, best->slot};
    if (bought.empty() || found_.is_better(packed.peaks))
      add_attempt(kSlots, start, best->total_bytes, text::join("match range ", best_range, ", ", edges_in_words(bought)));
    found_.offer(kSlots, packed, bought);
  }

  // ---- What is known by stages only.

  // Lifetimes are as long as the stages of their ends, so that they overlap wherever two nodes may run at once; what
  // packs lifetimes then packs these.
  void plan_by_stages() {
    const Stages stages(nodes_, before_);
    const auto precedes = [&](NodeId a, NodeId b) { return stages.precedes(a, b); };
    const ReuseResult reuse = find_reuse(*graph_, nodes_, lives_, {.inplace = options_.inplace, .precedes = precedes});
    check_sizes(*graph_, reuse);
    std::vector<PackBuffer> buffers = reuse.buffers;
    for (PackBuffer& one : buffers) {
      const NodeRange wide = stages.around({one.begin, one.end});
      one.begin = wide.begin;
      one.end = wide.end;
    }
    if (wants_chunks(options_)) return pack_into_chunks(reuse, buffers);
    if (!chosen_.offsets.empty()) pack_stages(reuse, buffers);
    const bool is_fixed = std::ranges::any_of(buffers, [](const PackBuffer& one) { return one.fixed.has_value(); });
    if (chosen_.slots && !is_fixed) pack_stages_into_slots(reuse, buffers);
  }

  void pack_stages(const ReuseResult& reuse, const std::vector<PackBuffer>& buffers) {
    const std::size_t devices = graph_->devices.size();
    Portfolio portfolio(buffers, devices);
    if (portfolio.fixed_clash()) return;
    portfolio.start_without_reuse();
    for (const OffsetStrategy* strategy : chosen_.offsets)
      if (!portfolio.at_bound() && !patience_.over())
        (void)portfolio.run(*strategy, {patience_, options_.all_strategies, options_.capacity_bytes, options_.seed,
                                        static_cast<std::size_t>(options_.threads)});
    for (const PlanAttempt& attempt : portfolio.attempts()) attempts_.push_back(attempt);
    PackedApart packed{&reuse, portfolio.offsets(), {}};
    for (std::size_t device = 0; device < devices; ++device) packed.peaks.push_back(portfolio.used_bytes(device));
    found_.offer(kApart, packed, {});
  }

  void pack_stages_into_slots(const ReuseResult& reuse, const std::vector<PackBuffer>& buffers) {
    ReuseResult wide = reuse;
    wide.buffers = buffers;
    const BestSlots best = sweep_slots({*graph_, nodes_, {}, options_, {}, wide, patience_, false});
    PackedApart packed{&reuse, offsets_in_slots(best.packing, buffers), peaks_of(best.packing, graph_->devices.size()), best.packing.slots,
                       best.packing.slot};
    found_.offer(kSlots, packed, {});
  }

  void pack_into_chunks(const ReuseResult& reuse, const std::vector<PackBuffer>& buffers) {
    std::vector<std::size_t> touches(buffers.size(), 0);
    for (ValueId v = 0; v < lives_.size(); ++v)
      if (const std::uint32_t buffer = reuse.values[v].buffer; buffer != kNoBuffer) touches[buffer] += 1 + lives_[v].reads;
    const std::optional<ChunksPacking> packing =
        pack_chunks({buffers, touches, options_, chosen_.offsets, graph_->devices.size(), patience_});
    if (packing) found_.offer(kChunks, {&reuse, packing->offsets, packing->peaks, {}, {}, packing->chunks}, {});
  }

  void add_attempt(std::string_view strategy, Clock::time_point start, std::optional<std::size_t> peak, std::string note) {
    attempts_.push_back(
        {std::string(strategy), peak, std::chrono::duration<double, std::milli>(Clock::now() - start).count(), std::move(note)});
  }

  // The plan for nodes in order, where it needs few enough edges.
  void offer_in_order() {
    if (!in_order_.has_locations() || nodes_.end - nodes_.begin > kMostParallelNodes) return;
    PlanTables tables = in_order_.tables();
    tables.edges = find_edges(*graph_, tables);
    attempts_.push_back({"in_order", in_order_.peak_bytes(), in_order_.time_ms(), text::join(tables.edges.size(), " edges")});
    found_.offer_whole(std::move(tables));
  }

  // No plan fits the capacity; where no edges may be bought, perhaps none can.
  void explain_nothing(PlanTables& best) const {
    if (options_.most_edges != 0) return;
    for (std::size_t device = 0; device < bounds_.size(); ++device) {
      PlanArena& arena = best.arenas[device];
      arena.lower_bound_bytes = std::max(arena.lower_bound_bytes, bounds_[device]);
      if (bounds_[device] > options_.capacity_bytes) best.outcome = PlanOutcome::infeasible;
    }
  }

  static bool is_at_bound(const PlanTables& best) {
    return std::ranges::all_of(best.arenas, [](const PlanArena& arena) { return arena.bytes == arena.lower_bound_bytes; });
  }

  const Clock::time_point start_ = Clock::now();
  const std::shared_ptr<const Graph>& graph_;
  const PlanOptions& options_;
  const ChosenStrategies chosen_;
  const NodeRange nodes_;
  const Patience patience_;
  const Plan in_order_;
  const std::vector<std::vector<NodeId>> before_;
  std::vector<Life> lives_;
  const std::vector<std::uint32_t> colours_;
  const bool is_by_stages_;  // too many nodes to look at all pairs of them
  Found found_;
  std::vector<std::size_t> bounds_;  // of each device, without edges
  std::vector<PlanAttempt> attempts_;
};

}  // namespace

Plan plan_parallel(const std::shared_ptr<const Graph>& graph, const PlanOptions& options) { return ParallelPlanner(graph, options).run(); }

}  // namespace berth::internal::plan::parallel

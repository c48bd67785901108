// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/allowance.h"
#include "base/deadline.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/plan/plan.h"
#include "plan/best_reuse.h"
#include "plan/best_slots.h"
#include "plan/bound_proof.h"
#include "plan/chunks.h"
#include "plan/in_order.h"
#include "plan/kept.h"
#include "plan/packed.h"
#include "plan/parallel/planner.h"
#include "plan/plain_slots.h"
#include "plan/plan_maker.h"
#include "plan/plan_options.h"
#include "plan/portfolio.h"
#include "plan/preferences.h"
#include "plan/sizes.h"
#include "plan/survivors.h"
#include "plan/verify/refute.h"

// The pipeline: graph → lifetimes → reuse → packing → plan.
namespace berth::internal::plan {

namespace {

using Clock = Patience::Clock;
using NodeList = std::vector<NodeId>;

class Planner {
 public:
  Planner(std::shared_ptr<const Graph> graph, const PlanOptions& options, const NodeList& order)
      : graph_(std::move(graph)),
        options_(options),
        order_(order),
        chosen_(check_options(*graph_, options)),
        nodes_(planned_nodes(*graph_, options)),
        kept_(find_kept_ranges(*graph_, nodes_, options)),
        reuse_(find_reuse()),
        proofs_(find_bound_proofs(reuse_.buffers, graph_->devices.size())),
        portfolio_(reuse_.buffers, graph_->devices.size()),
        prepared_(prepared()),
        finishing_(kFinishing * prepared_),
        patience_(end_for(finishing_), options.cancel),
        naive_bytes_(graph_->devices.size(), 0) {
    check_sizes(*graph_, reuse_);
    for (const PackBuffer& buffer : reuse_.buffers) naive_bytes_[buffer.device] += buffer.bytes;
  }

  Plan run() && {
    best_.tables = empty_tables();
    if (is_impossible()) {
      best_.tables.outcome = PlanOutcome::infeasible;
    } else if (wants_chunks(options_)) {
      run_chunks();
    } else {
      if (!chosen_.offsets.empty()) run_offsets();
      if (chosen_.slots) run_slots(kSlots);
      if (chosen_.plain) run_slots(kPlainSlots);
      if (best_.tables.outcome == PlanOutcome::unknown && !found_) throw_no_slots();
      claim_proofs();
    }
    if (plain_range_) {
      if (is_limit(options_.time_limit) && !in_hand_ && has_locations(best_.tables)) hold_best();
      if (std::optional<Plan> plain = plan_plainly()) return *std::move(plain);
    }
    return std::move(*this).finish_last();
  }

 private:
  // When strategies stop, so that the plan can be finished and verified by the end.
  std::optional<Clock::time_point> end_for(Clock::duration finishing) const {
    std::optional<Clock::time_point> end = end_of(options_.time_limit, start_);
    if (end) *end -= finishing;
    return end;
  }

  // The verifier is the larger part of what is to come; were it to need no longer than what is done …
  Clock::duration prepared() const {
    const Clock::duration until_here = Clock::now() - start_;
    base::reached(kPreparedShare);
    if (base::is_short_for(until_here)) throw base::OutOfTime();
    return until_here;
  }

  double time_ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }

  ReuseResult find_reuse() const {
    const std::vector<Life> lives = find_lives(*graph_, nodes_, options_, order_);
    check_fixed(*graph_, lives);
    base::reached(kPreparedShare / 2);
    ReuseResult found = is_plain() ? find_plain_reuse(*graph_, nodes_, lives, options_.inplace, order_, kept_)
                                   : find_best_reuse(*graph_, nodes_, lives, options_.inplace, order_, kept_);
    base::reached(kPreparedShare * 3 / 4);
    return found;
  }

  // Everything but the locations.
  PlanTables empty_tables() const {
    PlanTables tables;
    tables.nodes = nodes_;
    tables.order = order_;
    tables.alignment = options_.alignment;
    tables.capacity_bytes = options_.capacity_bytes;
    tables.arenas.resize(graph_->devices.size());
    for (std::size_t device = 0; device < tables.arenas.size(); ++device) {
      tables.arenas[device].lower_bound_bytes = portfolio_.lower_bound_bytes(device);
      tables.arenas[device].proof = proofs_[device];
    }
    for (std::size_t device = 0; device < naive_bytes_.size(); ++device) tables.arenas[device].naive_bytes = naive_bytes_[device];
    return tables;
  }

  bool is_impossible() const {
    for (std::size_t device = 0; device < graph_->devices.size(); ++device)
      if (portfolio_.lower_bound_bytes(device) >
          std::min(options_.capacity_bytes, chunks_capacity_bytes(options_, static_cast<std::uint32_t>(device))))
        return true;
    return portfolio_.fixed_clash() || (wants_chunks(options_) && is_past_chunks(reuse_.buffers, options_));
  }

  void run_chunks() {
    tell_progress(kChunks);
    std::vector<std::size_t> touches(reuse_.buffers.size(), 0);
    const std::vector<Life> lives = find_lives(*graph_, nodes_, options_, order_);
    for (ValueId v = 0; v < lives.size(); ++v)
      if (const std::uint32_t buffer = reuse_.values[v].buffer; buffer != kNoBuffer) touches[buffer] += 1 + lives[v].reads;
    const auto start = Clock::now();
    PlanAttempt attempt{std::string(kChunks)};
    const std::optional<ChunksPacking> packing =
        pack_chunks({reuse_.buffers, touches, options_, chosen_.offsets, graph_->devices.size(), patience_});
    attempt.time_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (!packing) attempt.note = "the values do not all fit in the arenas";
    if (packing) attempt.peak_bytes = std::accumulate(packing->peaks.begin(), packing->peaks.end(), std::size_t{0});
    portfolio_.add_attempt(std::move(attempt));
    if (!packing) return;
    chunks_ = packing->chunks;
    offer(kChunks, packing->offsets, packing->peaks, {}, {});
  }

  // The portfolio holds its own copy of the buffers; ours are freed meanwhile.
  void run_offsets() {
    if (reuse_.preferences.empty()) (void)std::exchange(reuse_.buffers, {});
    portfolio_.start_without_reuse();
    offer_offsets("no_reuse");
    // Until a plan is in hand, there is all of the time for a sweep: better none than one that reuses nothing.
    const Patience whole(last_end_of(options_.time_limit, start_), options_.cancel);
    for (const OffsetStrategy* strategy : chosen_.offsets) {
      const bool is_first = strategy->family == Family::sweep && !in_hand_;
      if (!is_first) hold();
      const Patience& patience = is_first ? whole : patience_;
      tell_progress(strategy->name);
      if (portfolio_.at_bound() && !options_.all_strategies) {
        portfolio_.add_attempt({std::string(strategy->name), {}, 0, "not needed: the bound is reached"});
      } else if (patience.over() || patience.is_short_for(sorting_)) {
        portfolio_.add_attempt({std::string(strategy->name), {}, 0, std::string(to_note(PackEnd::out_of_time))});
      } else if (portfolio_.run(*strategy, {patience, options_.all_strategies, options_.capacity_bytes, options_.seed,
                                            static_cast<std::size_t>(options_.threads)})) {
        offer_offsets(strategy->name);
        hold();
      }
    }
    (void)std::exchange(reuse_.buffers, {});
    reuse_.buffers = portfolio_.take_buffers();
    if (nodes_.end < graph_->nodes.size() && best_.tables.outcome != PlanOutcome::unknown && !patience_.over()) settle_survivors();
  }

  // What later ranges find in the arena is packed at its bottom, if that costs nothing.
  void settle_survivors() {
    const std::vector<Life> lives = find_lives(*graph_, nodes_, options_, order_);
    const SurvivorsTask task{*graph_, nodes_, lives, reuse_, chosen_.offsets, best_.peaks(), patience_};
    std::optional<SurvivorsPacking> low = pack_survivors_low(task);
    if (!low) return;
    best_.offsets = std::move(low->offsets);
    best_.set_peaks(low->peaks);
    hand_is_best_ = false;
  }

  // Within a time limit, the first plan is finished and verified before strategies look for a better one: then
  // nothing can come too late, and it is known how long that takes.
  void hold() {
    if (in_hand_ || !is_limit(options_.time_limit) || portfolio_.at_bound() || best_.tables.outcome == PlanOutcome::unknown) return;
    const auto start = Clock::now();
    hold_best();
    finishing_ = Clock::now() - start;
    patience_ = Patience(end_for(finishing_ + finishing_ / 4), options_.cancel);  // the next may take a little longer
  }

  void hold_best() {
    in_hand_ = finish(best_, reuse_.values);
    hand_is_best_ = true;
  }

  // A bound that the search proved is claimed only if the verifier, which is slower and independent of the
  // search, proves it too.
  void claim_proofs() {
    bool optimal = best_.tables.outcome == PlanOutcome::feasible;
    for (std::size_t device = 0; device < best_.tables.arenas.size(); ++device) {
      PlanArena& arena = best_.tables.arenas[device];
      const std::size_t proved = portfolio_.proved_bytes(device);
      const NodeRange steps = portfolio_.proved_steps(device);
      if (proved > arena.lower_bound_bytes && verify::surely_do_not_fit(buffers_in(device, steps), proved - 1)) {
        arena.lower_bound_bytes = proved;
        arena.proof = {BoundProof::By::search, steps};
        hand_is_best_ = false;
        if (proved > options_.capacity_bytes) best_.tables.outcome = PlanOutcome::infeasible;
      }
      optimal = optimal && arena.bytes <= arena.lower_bound_bytes;
    }
    if (!optimal) return;
    best_.tables.outcome = PlanOutcome::optimal;
    hand_is_best_ = false;
  }

  std::vector<verify::LivingBuffer> buffers_in(std::size_t device, NodeRange steps) const {
    std::vector<verify::LivingBuffer> out;
    for (const PackBuffer& one : reuse_.buffers)
      if (one.device == device && one.begin < steps.end && steps.begin < one.end)
        out.push_back({one.bytes, one.begin, one.end, one.alignment, one.fixed});
    return out;
  }

  void offer_offsets(std::string_view strategy) {
    std::vector<std::size_t> peaks;
    for (std::size_t device = 0; device < graph_->devices.size(); ++device) peaks.push_back(portfolio_.used_bytes(device));
    std::vector<std::size_t> offsets = portfolio_.offsets();
    if (!reuse_.preferences.empty()) {
      offsets = apply_preferences(reuse_.preferences, reuse_.buffers, std::move(offsets), peaks);
      peaks.assign(peaks.size(), 0);  // the highest buffer may have moved down
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        const PackBuffer& buffer = reuse_.buffers[i];
        if (buffer.bytes != 0) peaks[buffer.device] = std::max(peaks[buffer.device], offsets[i] + buffer.bytes);
      }
    }
    offer(strategy, std::move(offsets), peaks, {}, {});
  }

  void tell_progress(std::string_view strategy) {
    if (!options_.on_strategy) return;
    const std::size_t of_slots = (chosen_.slots ? 1U : 0U) + (chosen_.plain ? 1U : 0U);
    PlanProgress progress{strategy, portfolio_.attempts().size(), chosen_.offsets.size() + of_slots, {}};
    if (best_.tables.outcome != PlanOutcome::unknown) progress.peak_bytes = best_.total_bytes;
    const base::Allowance of_the_caller({});
    options_.on_strategy(progress);
  }

  void run_slots(std::string_view strategy) {
    tell_progress(strategy);
    PlanAttempt attempt{std::string(strategy)};
    const auto start = Clock::now();
    if (has_fixed(reuse_.buffers, kept_)) {
      attempt.note = "skipped: slots have no fixed offsets";
    } else if (found_ && best_.tables.outcome == PlanOutcome::optimal && !options_.all_strategies) {
      attempt.note = "not needed: the bound is reached";
    } else if (best_.tables.outcome != PlanOutcome::unknown && patience_.is_short_for(strategy == kSlots ? sorting_ : prepared_)) {
      attempt.note = to_note(PackEnd::out_of_time);
    } else if (strategy == kSlots || is_plain()) {
      offer_slots(attempt);
    } else if (!chosen_.offsets.empty() && !options_.all_strategies && reuse_.buffers.size() > kVeryMany) {
      attempt.note = to_note(PackEnd::too_many);  // offsets are all but always better
    } else {
      try_plainly(attempt);
    }
    attempt.time_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    portfolio_.add_attempt(std::move(attempt));
  }

  bool is_plain() const { return chosen_.plain && !chosen_.slots; }

  BestSlots sweep(PlanAttempt& attempt, const ReuseResult& reuse, bool plainly) const {
    BestSlots best = sweep_slots({*graph_, nodes_, order_, options_, kept_, reuse, patience_, plainly});
    attempt.note = text::join("match range ", best.match_range);
    attempt.peak_bytes = best.packing.total_bytes;
    return best;
  }

  void offer_slots(PlanAttempt& attempt) {
    BestSlots best = sweep(attempt, reuse_, is_plain());
    const std::vector<std::size_t> peaks = peaks_of(best.packing, graph_->devices.size());
    std::vector<std::size_t> offsets = offsets_in_slots(best.packing, reuse_.buffers);
    offer(attempt.strategy, std::move(offsets), peaks, std::move(best.packing.slots), std::move(best.packing.slot));
  }

  // The plain rule reuses less by options, so that its plan has buffers of its own.
  void try_plainly(PlanAttempt& attempt) {
    const std::vector<Life> lives = find_lives(*graph_, nodes_, options_, order_);
    const BestSlots best = sweep(attempt, find_plain_reuse(*graph_, nodes_, lives, options_.inplace, order_, kept_), true);
    const bool is_less = best_.tables.outcome == PlanOutcome::unknown || best.packing.total_bytes < best_.total_bytes;
    if (best.holds && is_less) plain_range_ = best.match_range;
  }

  // Nothing when there is no time for it.
  std::optional<Plan> plan_plainly() const {
    PlanOptions options = options_;
    options.strategy = kPlainSlots;
    options.match_range = plain_range_;
    options.on_strategy = {};
    options.time_limit = left_of(options_.time_limit, start_);
    try {
      return PlanMaker::with_attempts(Planner(graph_, options, order_).run(), portfolio_.attempts());
    } catch (const base::OutOfTime&) {
      return std::nullopt;
    }
  }

  bool holds_capacity(const std::vector<std::size_t>& peaks) const {
    return std::all_of(peaks.begin(), peaks.end(), [&](std::size_t peak) { return peak <= options_.capacity_bytes; });
  }

  // Keeps a packing if it is the smallest so far that fits the capacity.
  void offer(std::string_view strategy, std::vector<std::size_t> offsets, const std::vector<std::size_t>& peaks,
             std::vector<PlanSlot> slots, std::vector<std::uint32_t> slot_of) {
    found_ = true;
    const std::size_t total = std::accumulate(peaks.begin(), peaks.end(), std::size_t{0});
    if (!holds_capacity(peaks) || (best_.tables.outcome != PlanOutcome::unknown && total >= best_.total_bytes)) return;
    best_ = {empty_tables(), std::move(offsets), std::move(slot_of)};
    hand_is_best_ = false;
    PlanTables& tables = best_.tables;
    tables.strategy = strategy;
    tables.slots = std::move(slots);
    tables.chunks = chunks_;
    best_.set_peaks(peaks);
    if (options_.on_better && !patience_.is_short_for(finishing_)) tell_better();
  }

  void tell_better() {
    const Plan better = finish(best_, reuse_.values);
    const base::Allowance of_the_caller({});
    options_.on_better(better);
  }

  // Only slots were requested, and there can be no such plan.
  [[noreturn]] void throw_no_slots() const {
    throw ArgumentError(ErrorCode::invalid_argument, {"a plan of slots", "a value has a fixed offset, and slots have none",
                                                      "use the strategy offsets, or remove the fixed offset"});
  }

  // Takes both by value, so that they are freed before the verifier runs.
  Plan finish(Packed packed, std::vector<ValueInBuffer> values) const {
    if (!in_hand_) base::reached(kPackedShare);
    std::vector<Life> lives = find_lives(*graph_, nodes_, options_, order_);
    packed.tables.locations = locations_of(packed, values, lives);
    PlanTables tables = std::move(std::exchange(packed, {}).tables);
    (void)std::exchange(values, {});
    return PlanMaker::make(graph_, std::move(tables), std::move(lives), portfolio_.attempts(), time_ms());
  }

  Plan finish_last() && {
    (void)portfolio_.take_buffers();
    (void)std::exchange(reuse_.buffers, {});
    if (!in_hand_) return finish(std::move(best_), std::move(reuse_.values));
    if (!hand_is_best_) {
      try {
        return finish(std::move(best_), std::move(reuse_.values));
      } catch (const base::OutOfTime&) {
      }
    }
    return PlanMaker::with_attempts(*std::move(in_hand_), portfolio_.attempts());
  }

  // Measured over instances of a million buffers of many shapes: these shares of making one plan are done when lifetimes,
  // reuse and parts are found (0.18 to 0.5), and when buffers are packed once (0.48 to 0.6). Writing out locations and
  // verifying them takes at most so many times as long as finding the first.
  static constexpr double kPreparedShare = 0.3;
  static constexpr double kPackedShare = 0.53;
  static constexpr int kFinishing = 5;

  const Clock::time_point start_ = Clock::now();
  const std::shared_ptr<const Graph> graph_;
  const PlanOptions& options_;
  const NodeList& order_;
  const ChosenStrategies chosen_;
  const NodeRange nodes_;
  const std::vector<KeptRange> kept_;  // of the plan before this one
  ReuseResult reuse_;
  const std::vector<BoundProof> proofs_;  // of the lower bounds
  Portfolio portfolio_;
  const Clock::duration prepared_;  // the time until here
  // A strategy sorts all buffers before it first looks at the clock; so were they until here, several times.
  const Clock::duration sorting_ = prepared_ / 4;
  Clock::duration finishing_;             // the time that finishing and verifying a plan takes: an estimate, until one is in hand
  Patience patience_;                     // of strategies
  std::vector<std::size_t> naive_bytes_;  // of each device

  std::vector<PlanChunk> chunks_;
  Packed best_;
  std::optional<int> plain_range_;  // of the plain rule of slots, where that needs less than the best
  std::optional<Plan> in_hand_;     // verified already
  bool hand_is_best_ = false;       // nothing better was found since
  bool found_ = false;              // some packing, perhaps past the capacity
};

}  // namespace

NodeRange planned_nodes(const Graph& graph, const PlanOptions& options) {
  return options.nodes.value_or(
      NodeRange{options.after == nullptr ? 0 : options.after->tables().nodes.end, static_cast<NodeId>(graph.nodes.size())});
}

std::vector<std::size_t> bounds_in_order(const Graph& graph, const PlanOptions& options, const std::vector<NodeId>& order) {
  const NodeRange nodes = planned_nodes(graph, options);
  const std::vector<Life> lives = find_lives(graph, nodes, options, order);
  return bounds_of(find_best_reuse(graph, nodes, lives, options.inplace, order, find_kept_ranges(graph, nodes, options)),
                   graph.devices.size());
}

Plan plan_in_order(std::shared_ptr<const Graph> graph, const PlanOptions& options, const std::vector<NodeId>& order) {
  Plan made = options.parallel > 1 ? parallel::plan_parallel(graph, options) : Planner(graph, options, order).run();
  if (made.outcome() != PlanOutcome::infeasible || !options.inplace) return made;
  // Reuse by options may be what does not fit: fixed offsets pin whole buffers, and a view keeps its input
  // alive.
  PlanOptions apart = options;
  apart.inplace = false;
  Plan other = options.parallel > 1 ? parallel::plan_parallel(graph, apart) : Planner(std::move(graph), apart, order).run();
  return other.has_locations() ? other : made;
}

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/plan/plan.h"
#include "plan/best_reuse.h"
#include "plan/bound_proof.h"
#include "plan/chunks.h"
#include "plan/in_order.h"
#include "plan/order.h"
#include "plan/plan_maker.h"
#include "plan/plan_options.h"
#include "plan/portfolio.h"
#include "plan/preferences.h"
#include "plan/slots.h"
#include "plan/verify/refute.h"

// The pipeline: graph → lifetimes → reuse → packing → plan.
namespace berth::internal::plan {

namespace {

using Clock = Patience::Clock;
using NodeList = std::vector<NodeId>;

bool has_locations(const PlanTables& tables) { return tables.outcome == PlanOutcome::optimal || tables.outcome == PlanOutcome::feasible; }

class Planner {
 public:
  Planner(std::shared_ptr<const Graph> graph, const PlanOptions& options, const NodeList& order)
      : graph_(std::move(graph)),
        options_(options),
        order_(order),
        chosen_(check_options(*graph_, options)),
        nodes_(planned_nodes(*graph_, options)),
        reuse_(find_reuse()),
        proofs_(find_bound_proofs(reuse_.buffers, graph_->devices.size())),
        portfolio_(reuse_.buffers, graph_->devices.size()),
        patience_(deadline(), options.cancel),
        naive_bytes_(graph_->devices.size(), 0) {
    check_sizes();
    for (const PackBuffer& buffer : reuse_.buffers) naive_bytes_[buffer.device] += buffer.bytes;
    if (options.parallel > 1) colours_ = buffer_colours();
  }

  Plan run() && {
    best_.tables = empty_tables();
    if (is_impossible()) {
      best_.tables.outcome = PlanOutcome::infeasible;
    } else if (wants_chunks(options_)) {
      run_chunks();
    } else {
      if (!chosen_.offsets.empty()) run_offsets();
      if (chosen_.slots) run_slots();
      if (best_.tables.outcome == PlanOutcome::unknown && !found_) throw_no_slots();
      claim_proofs();
    }
    return std::move(*this).finish_last();
  }

 private:
  std::optional<Clock::time_point> deadline() const {
    const Clock::time_point start = start_;
    const auto most = std::chrono::duration<double>(Clock::time_point::max() - start) / 2;
    if (options_.time_limit >= most) return std::nullopt;
    return start + std::chrono::duration_cast<Clock::duration>(options_.time_limit);
  }

  double time_ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }

  ReuseResult find_reuse() const {
    const std::vector<Life> lives = find_lives(*graph_, nodes_, options_.alignment, order_);
    check_fixed(lives);
    return find_best_reuse(*graph_, nodes_, lives, options_.inplace, order_);
  }

  void check_fixed(const std::vector<Life>& lives) const {
    for (ValueId v = 0; v < lives.size(); ++v) {
      const std::optional<std::size_t> fixed = graph_->values[v].fixed_offset;
      if (!fixed || !lives[v].placed()) continue;
      const std::size_t alignment = lives[v].alignment;
      if (*fixed > kMaxBytes / 2) refuse_sum(v, lives[v].extent_bytes(), alignment, fixed);
      if (*fixed % alignment != 0)
        throw ArgumentError(ErrorCode::invalid_alignment,
                            {text::join(graph_->describe_value(v), " at the fixed offset ", *fixed),
                             text::join("it must be a multiple of ", alignment), "fix it at such an offset"},
                            {{"offset", *fixed}, {"alignment", alignment}});
    }
  }

  // No offset that a packer computes can overflow: the sum of all sizes, alignments and fixed offsets is
  // bounded.
  void check_sizes() const {
    std::size_t sum = 0;
    std::vector<bool> counted(reuse_.buffers.size(), false);
    for (ValueId v = 0; v < reuse_.values.size(); ++v) {
      const std::uint32_t buffer = reuse_.values[v].buffer;
      if (buffer == kNoBuffer || counted[buffer]) continue;
      counted[buffer] = true;
      const PackBuffer& pack = reuse_.buffers[buffer];
      for (const std::size_t part : {pack.bytes, std::size_t{pack.alignment}, pack.fixed.value_or(0)}) {
        if (part > kMaxBytes / 2 - sum) refuse_sum(v, pack.bytes, pack.alignment, pack.fixed);
        sum += part;
      }
    }
  }

  [[noreturn]] void refuse_sum(ValueId v, std::size_t bytes, std::size_t alignment, std::optional<std::size_t> fixed) const {
    std::string asked = text::join(graph_->describe_value(v), " of ", text::bytes(bytes), ", aligned to ", text::bytes(alignment));
    if (fixed) asked += text::join(", at ", *fixed);
    throw ArgumentError(
        ErrorCode::size_overflow,
        {std::move(asked), "with the values before it, it exceeds the address space", "check its size, offset and alignment"},
        {{"value", text::printable(graph_->values[v].name)}, {"bytes", bytes}});
  }

  std::vector<std::uint32_t> buffer_colours() const {
    const std::vector<std::uint32_t> nodes = colour_nodes(*graph_, nodes_, static_cast<std::uint32_t>(options_.parallel));
    std::vector<std::uint32_t> colours;
    colours.reserve(reuse_.buffers.size());
    for (const PackBuffer& buffer : reuse_.buffers) colours.push_back(nodes[buffer.begin - nodes_.begin]);
    return colours;
  }

  // Everything but the locations.
  PlanTables empty_tables() const {
    PlanTables tables;
    tables.nodes = nodes_;
    tables.order = order_;
    tables.parallel = options_.parallel;
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
    const std::vector<Life> lives = find_lives(*graph_, nodes_, options_.alignment, order_);
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
    for (const OffsetStrategy* strategy : chosen_.offsets) {
      tell_progress(strategy->name);
      if (portfolio_.at_bound() && !options_.all_strategies) {
        portfolio_.add_attempt({std::string(strategy->name), {}, 0, "not needed: the bound is reached"});
      } else if (patience_.over()) {
        portfolio_.add_attempt({std::string(strategy->name), {}, 0, std::string(to_note(PackEnd::out_of_time))});
      } else if (portfolio_.run(*strategy, {patience_, options_.all_strategies, options_.capacity_bytes, options_.seed,
                                            static_cast<std::size_t>(options_.threads)})) {
        offer_offsets(strategy->name);
      }
    }
    (void)std::exchange(reuse_.buffers, {});
    reuse_.buffers = portfolio_.take_buffers();
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
        if (proved > options_.capacity_bytes) best_.tables.outcome = PlanOutcome::infeasible;
      }
      optimal = optimal && arena.bytes <= arena.lower_bound_bytes;
    }
    if (optimal) best_.tables.outcome = PlanOutcome::optimal;
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
    PlanProgress progress{strategy, portfolio_.attempts().size(), chosen_.offsets.size() + (chosen_.slots ? 1 : 0), {}};
    if (best_.tables.outcome != PlanOutcome::unknown) progress.peak_bytes = best_.total_bytes;
    options_.on_strategy(progress);
  }

  void run_slots() {
    tell_progress(kSlots);
    PlanAttempt attempt{std::string(kSlots)};
    const auto start = Clock::now();
    const bool fixed = std::any_of(reuse_.buffers.begin(), reuse_.buffers.end(), [](const PackBuffer& b) { return b.fixed.has_value(); });
    if (fixed) {
      attempt.note = "skipped: slots have no fixed offsets";
    } else if (found_ && best_.tables.outcome == PlanOutcome::optimal && !options_.all_strategies) {
      attempt.note = "not needed: the bound is reached";
    } else {
      sweep_slots(attempt);
    }
    attempt.time_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    portfolio_.add_attempt(std::move(attempt));
  }

  void sweep_slots(PlanAttempt& attempt) {
    const int first = options_.match_range.value_or(1);
    const int last = options_.match_range.value_or(16);
    std::optional<SlotsPacking> best;
    for (int range = first; range <= last; ++range) {
      if (best && patience_.over()) break;
      SlotsPacking packing = pack_slots({reuse_.buffers, options_.slots, colours_, range});
      const bool holds = holds_capacity(peaks_of(packing));
      if (best && (packing.total_bytes >= best->total_bytes || !holds) && holds_capacity(peaks_of(*best))) continue;
      if (best && packing.total_bytes >= best->total_bytes && !holds) continue;
      best = std::move(packing);
      attempt.note = text::join("match range ", range);
    }
    attempt.peak_bytes = best->total_bytes;
    const std::vector<std::size_t> peaks = peaks_of(*best);
    std::vector<std::size_t> offsets;
    offsets.reserve(best->slot.size());
    for (const std::uint32_t slot : best->slot) offsets.push_back(slot == kNoSlot ? 0 : best->slots[slot].offset);
    offer(kSlots, std::move(offsets), peaks, std::move(best->slots), std::move(best->slot));
  }

  std::vector<std::size_t> peaks_of(const SlotsPacking& packing) const {
    std::vector<std::size_t> peaks(graph_->devices.size(), 0);
    for (const PlanSlot& slot : packing.slots) peaks[slot.device] = std::max(peaks[slot.device], slot.offset + slot.bytes);
    return peaks;
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
    best_ = {empty_tables(), std::move(offsets), std::move(slot_of), total};
    PlanTables& tables = best_.tables;
    tables.strategy = strategy;
    tables.slots = std::move(slots);
    tables.chunks = chunks_;
    tables.outcome = PlanOutcome::optimal;
    for (std::size_t device = 0; device < peaks.size(); ++device) {
      tables.arenas[device].bytes = peaks[device];
      if (peaks[device] > tables.arenas[device].lower_bound_bytes) tables.outcome = PlanOutcome::feasible;
    }
    if (options_.on_better) options_.on_better(finish(best_, reuse_.values));
  }

  // Only slots were requested, and there can be no such plan.
  [[noreturn]] void throw_no_slots() const {
    throw ArgumentError(ErrorCode::invalid_argument, {"a plan of slots", "a value has a fixed offset, and slots have none",
                                                      "use the strategy offsets, or remove the fixed offset"});
  }

  // A packing, not yet expanded to a location for every value.
  struct Packed {
    PlanTables tables = {};  // without locations
    std::vector<std::size_t> offsets = {};
    std::vector<std::uint32_t> slot_of = {};
    std::size_t total_bytes = 0;
  };

  std::vector<ValueLocation> make_locations(const Packed& packed, const std::vector<ValueInBuffer>& values,
                                            const std::vector<Life>& lives) const {
    std::vector<ValueLocation> locations(lives.size());
    for (ValueId v = 0; v < locations.size(); ++v) {
      ValueLocation& location = locations[v];
      location.reason = lives[v].reason;
      const ValueInBuffer& value = values[v];
      if (value.reuse == Reuse::none || !has_locations(packed.tables)) continue;
      location.reuse = value.reuse;
      location.with = value.with;
      location.buffer = value.buffer;
      location.slot = packed.slot_of.empty() ? kNoSlot : packed.slot_of[value.buffer];
      location.offset = packed.offsets[value.buffer] + value.offset;
      location.extent_bytes = lives[v].extent_bytes();
      location.alignment = lives[v].alignment;
    }
    return locations;
  }

  // Takes both by value, so that they are freed before the verifier runs.
  Plan finish(Packed packed, std::vector<ValueInBuffer> values) const {
    std::vector<Life> lives = find_lives(*graph_, nodes_, options_.alignment, order_);
    packed.tables.locations = make_locations(packed, values, lives);
    PlanTables tables = std::move(std::exchange(packed, {}).tables);
    (void)std::exchange(values, {});
    if (tables.parallel > 1 && has_locations(tables)) tables.edges = find_edges(*graph_, tables);
    return PlanMaker::make(graph_, std::move(tables), std::move(lives), portfolio_.attempts(), time_ms());
  }

  Plan finish_last() && {
    (void)portfolio_.take_buffers();
    (void)std::exchange(reuse_.buffers, {});
    (void)std::exchange(colours_, {});
    return finish(std::move(best_), std::move(reuse_.values));
  }

  const Clock::time_point start_ = Clock::now();
  const std::shared_ptr<const Graph> graph_;
  const PlanOptions& options_;
  const NodeList& order_;
  const ChosenStrategies chosen_;
  const NodeRange nodes_;
  ReuseResult reuse_;
  const std::vector<BoundProof> proofs_;  // of the lower bounds
  Portfolio portfolio_;
  const Patience patience_;
  std::vector<std::size_t> naive_bytes_;  // of each device
  std::vector<std::uint32_t> colours_;    // of each buffer, in a parallel plan

  std::vector<PlanChunk> chunks_;
  Packed best_;
  bool found_ = false;  // some packing, perhaps past the capacity
};

}  // namespace

NodeRange planned_nodes(const Graph& graph, const PlanOptions& options) {
  return options.nodes.value_or(NodeRange{0, static_cast<NodeId>(graph.nodes.size())});
}

std::vector<std::size_t> bounds_in_order(const Graph& graph, const PlanOptions& options, const std::vector<NodeId>& order) {
  const NodeRange nodes = planned_nodes(graph, options);
  const std::vector<Life> lives = find_lives(graph, nodes, options.alignment, order);
  return bounds_of(find_best_reuse(graph, nodes, lives, options.inplace, order), graph.devices.size());
}

Plan plan_in_order(std::shared_ptr<const Graph> graph, const PlanOptions& options, const std::vector<NodeId>& order) {
  Plan made = Planner(graph, options, order).run();
  if (made.outcome() != PlanOutcome::infeasible || !options.inplace) return made;
  // Reuse by options may be what does not fit: fixed offsets pin whole buffers, and a view keeps its input
  // alive.
  PlanOptions apart = options;
  apart.inplace = false;
  Plan other = Planner(std::move(graph), apart, order).run();
  return other.has_locations() ? other : made;
}

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/plan/plan.h"
#include "plan/bound_proof.h"
#include "plan/chunks.h"
#include "plan/in_order.h"
#include "plan/lives.h"
#include "plan/order.h"
#include "plan/plan_maker.h"
#include "plan/plan_options.h"
#include "plan/portfolio.h"
#include "plan/sharing.h"
#include "plan/slots.h"
#include "plan/verify/refute.h"
#include "plan/wishes.h"

// The pipeline: graph → lives → sharing → packing → plan.
namespace berth {

namespace planning {

namespace {

using Clock = Patience::Clock;
using NodeList = std::vector<NodeId>;

// The most bytes live at once on each device.
std::vector<std::size_t> bounds_of(const SharingResult& shared, std::size_t devices) {
  const Portfolio portfolio(shared.buffers, devices);
  std::vector<std::size_t> bounds;
  for (std::size_t device = 0; device < devices; ++device) bounds.push_back(portfolio.lower_bound_bytes(device));
  return bounds;
}

// Over all devices: what a way of sharing is judged by.
std::size_t bound_of(const SharingResult& shared, std::size_t devices) {
  const std::vector<std::size_t> bounds = bounds_of(shared, devices);
  return std::accumulate(bounds.begin(), bounds.end(), std::size_t{0});
}

// Sharing can cost memory: a view keeps all of its input alive, a joined output exists from its first input on, and an output in place of a
// larger input stays as large. So what can do so is also left out, and the way with the least bound is taken.
SharingResult share_best(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool inplace, const NodeList& order) {
  SharingResult best = share(graph, nodes, lives, {.inplace = inplace}, order);
  const SharingRules took = best.took;
  if (!took.views && !took.joins && !took.smaller) return best;
  std::size_t least = bound_of(best, graph.devices.size());
  for (unsigned without = 1; without < 8; ++without) {
    const SharingRules rules{.views = (without & 1) == 0, .joins = (without & 2) == 0, .smaller = (without & 4) == 0};
    if ((!rules.views && !took.views) || (!rules.joins && !took.joins) || (!rules.smaller && !took.smaller)) continue;
    SharingResult other = share(graph, nodes, lives, rules, order);
    if (const std::size_t bound = bound_of(other, graph.devices.size()); bound < least) {
      least = bound;
      best = std::move(other);
    }
  }
  return best;
}

class Planner {
 public:
  Planner(std::shared_ptr<const Graph> graph, const PlanOptions& options, const NodeList& order)
      : graph_(std::move(graph)),
        options_(options),
        order_(order),
        chosen_(check_options(*graph_, options)),
        nodes_(planned_nodes(*graph_, options)),
        lives_(find_lives(*graph_, nodes_, options.alignment, order)),
        shared_(share_best(*graph_, nodes_, lives_, options.inplace, order)),
        proofs_(find_bound_proofs(shared_.buffers, graph_->devices.size())),
        portfolio_(shared_.buffers, graph_->devices.size()),
        patience_(deadline(), options.cancel) {
    check_sizes();
    if (options.parallel > 1) colours_ = buffer_colours();
  }

  Plan run() && {
    best_ = empty_tables();
    if (is_impossible()) {
      best_.outcome = PlanOutcome::infeasible;
      return finish();
    }
    if (wants_chunks(options_)) {
      run_chunks();
      return finish();
    }
    if (!chosen_.offsets.empty()) run_offsets();
    if (chosen_.slots) run_slots();
    if (best_.outcome == PlanOutcome::unknown && !found_) throw_no_slots();
    claim_proofs();
    return finish();
  }

 private:
  std::optional<Clock::time_point> deadline() const {
    const Clock::time_point start = start_;
    const auto most = std::chrono::duration<double>(Clock::time_point::max() - start) / 2;
    if (options_.time_limit >= most) return std::nullopt;
    return start + std::chrono::duration_cast<Clock::duration>(options_.time_limit);
  }

  double time_ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }

  // No offset that a packer computes can wrap: all bytes laid side by side, behind all that is fixed, stay far from the end.
  void check_sizes() const {
    std::size_t sum = 0;
    std::vector<bool> counted(shared_.buffers.size(), false);
    for (ValueId v = 0; v < shared_.values.size(); ++v) {
      const std::uint32_t buffer = shared_.values[v].buffer;
      if (buffer == kNoBuffer || counted[buffer]) continue;
      counted[buffer] = true;
      const PackBuffer& pack = shared_.buffers[buffer].pack;
      for (const std::size_t part : {pack.bytes, pack.alignment, pack.fixed.value_or(0)}) {
        if (part > kMaxBytes / 2 - sum) refuse_sum(v, pack);
        sum += part;
      }
    }
    for (ValueId v = 0; v < lives_.size(); ++v)
      if (const auto fixed = graph_->values[v].fixed_offset; fixed && lives_[v].placed() && *fixed % lives_[v].alignment != 0)
        throw ArgumentError(ErrorCode::invalid_alignment,
                            {text::join(graph_->describe_value(v), " at the fixed offset ", *fixed),
                             text::join("it must be a multiple of ", lives_[v].alignment), "fix it at such an offset"},
                            {{"offset", *fixed}, {"alignment", lives_[v].alignment}});
  }

  [[noreturn]] void refuse_sum(ValueId v, const PackBuffer& pack) const {
    std::string asked =
        text::join(graph_->describe_value(v), " of ", text::bytes(pack.bytes), ", aligned to ", text::bytes(pack.alignment));
    if (pack.fixed) asked += text::join(", at ", *pack.fixed);
    throw ArgumentError(
        ErrorCode::size_overflow,
        {std::move(asked), "with the values before it, it passes what can be addressed", "check its size, offset and alignment"},
        {{"value", text::printable(graph_->values[v].name)}, {"bytes", pack.bytes}});
  }

  std::vector<std::uint32_t> buffer_colours() const {
    const std::vector<std::uint32_t> nodes = colour_nodes(*graph_, nodes_, static_cast<std::uint32_t>(options_.parallel));
    std::vector<std::uint32_t> colours;
    colours.reserve(shared_.buffers.size());
    for (const SharedBuffer& buffer : shared_.buffers) colours.push_back(nodes[buffer.pack.begin - nodes_.begin]);
    return colours;
  }

  // Everything but the places.
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
    for (const SharedBuffer& buffer : shared_.buffers) tables.arenas[buffer.device].naive_bytes += buffer.pack.bytes;
    tables.places.resize(graph_->values.size());
    for (ValueId v = 0; v < tables.places.size(); ++v) tables.places[v].reason = lives_[v].reason;
    return tables;
  }

  bool is_impossible() const {
    for (std::size_t device = 0; device < graph_->devices.size(); ++device)
      if (portfolio_.lower_bound_bytes(device) >
          std::min(options_.capacity_bytes, chunks_capacity_bytes(options_, static_cast<std::uint32_t>(device))))
        return true;
    return portfolio_.fixed_clash() || (wants_chunks(options_) && is_past_chunks(shared_.buffers, options_));
  }

  void run_chunks() {
    tell_progress(kChunks);
    std::vector<std::size_t> touches(shared_.buffers.size(), 0);
    for (ValueId v = 0; v < lives_.size(); ++v)
      if (const std::uint32_t buffer = shared_.values[v].buffer; buffer != kNoBuffer) touches[buffer] += 1 + lives_[v].reads;
    const auto start = Clock::now();
    PlanAttempt attempt{std::string(kChunks)};
    const std::optional<ChunksPacking> packing =
        pack_chunks({shared_.buffers, touches, options_, chosen_.offsets, graph_->devices.size(), patience_});
    attempt.time_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (!packing) attempt.note = "found no room in the arenas for everything";
    if (packing) attempt.peak_bytes = std::accumulate(packing->peaks.begin(), packing->peaks.end(), std::size_t{0});
    portfolio_.add_attempt(std::move(attempt));
    if (!packing) return;
    chunks_ = packing->chunks;
    offer(kChunks, packing->offsets, packing->peaks, {}, {});
  }

  void run_offsets() {
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
  }

  // What the search has proved counts if the verifier, which is slower and knows nothing of the search, comes to the same.
  void claim_proofs() {
    bool optimal = best_.outcome == PlanOutcome::feasible;
    for (std::size_t device = 0; device < best_.arenas.size(); ++device) {
      PlanArena& arena = best_.arenas[device];
      const std::size_t proved = portfolio_.proved_bytes(device);
      const NodeRange steps = portfolio_.proved_steps(device);
      if (proved > arena.lower_bound_bytes && verification::surely_do_not_fit(buffers_in(device, steps), proved - 1)) {
        arena.lower_bound_bytes = proved;
        arena.proof = {BoundProof::By::search, steps};
        if (proved > options_.capacity_bytes) best_.outcome = PlanOutcome::infeasible;
      }
      optimal = optimal && arena.bytes <= arena.lower_bound_bytes;
    }
    if (optimal) best_.outcome = PlanOutcome::optimal;
  }

  std::vector<verification::LivingBuffer> buffers_in(std::size_t device, NodeRange steps) const {
    std::vector<verification::LivingBuffer> out;
    for (const SharedBuffer& one : shared_.buffers)
      if (one.device == device && one.pack.begin < steps.end && steps.begin < one.pack.end)
        out.push_back({one.pack.bytes, one.pack.begin, one.pack.end, one.pack.alignment, one.pack.fixed});
    return out;
  }

  void offer_offsets(std::string_view strategy) {
    std::vector<std::size_t> peaks;
    for (std::size_t device = 0; device < graph_->devices.size(); ++device) peaks.push_back(portfolio_.peak_bytes(device));
    const std::vector<std::size_t> offsets = grant_wishes(shared_.buffers, portfolio_.offsets(), peaks);
    peaks.assign(peaks.size(), 0);  // what stood highest may have wished to lie lower
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const SharedBuffer& buffer = shared_.buffers[i];
      if (buffer.pack.bytes != 0) peaks[buffer.device] = std::max(peaks[buffer.device], offsets[i] + buffer.pack.bytes);
    }
    offer(strategy, offsets, peaks, {}, {});
  }

  void tell_progress(std::string_view strategy) {
    if (!options_.on_strategy) return;
    PlanProgress progress{strategy, portfolio_.attempts().size(), chosen_.offsets.size() + (chosen_.slots ? 1 : 0), {}};
    if (best_.outcome != PlanOutcome::unknown) progress.peak_bytes = best_total_;
    options_.on_strategy(progress);
  }

  void run_slots() {
    tell_progress(kSlots);
    PlanAttempt attempt{std::string(kSlots)};
    const auto start = Clock::now();
    const bool fixed =
        std::any_of(shared_.buffers.begin(), shared_.buffers.end(), [](const SharedBuffer& b) { return b.pack.fixed.has_value(); });
    if (fixed) {
      attempt.note = "skipped: slots have no fixed offsets";
    } else if (found_ && best_.outcome == PlanOutcome::optimal && !options_.all_strategies) {
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
      SlotsPacking packing = pack_slots({shared_.buffers, options_.slots, colours_, range});
      const bool holds = holds_capacity(peaks_of(packing));
      if (best && (packing.total_bytes >= best->total_bytes || !holds) && holds_capacity(peaks_of(*best))) continue;
      if (best && packing.total_bytes >= best->total_bytes && !holds) continue;
      best = std::move(packing);
      attempt.note = text::join("match range ", range);
    }
    attempt.peak_bytes = best->total_bytes;
    const std::vector<std::size_t> peaks = peaks_of(*best);
    std::vector<std::size_t> offsets;
    for (const std::uint32_t slot : best->slot) offsets.push_back(slot == kNoSlot ? 0 : best->slots[slot].offset);
    offer(kSlots, offsets, peaks, best->slots, best->slot);
  }

  std::vector<std::size_t> peaks_of(const SlotsPacking& packing) const {
    std::vector<std::size_t> peaks(graph_->devices.size(), 0);
    for (const PlanSlot& slot : packing.slots) peaks[slot.device] = std::max(peaks[slot.device], slot.offset + slot.bytes);
    return peaks;
  }

  bool holds_capacity(const std::vector<std::size_t>& peaks) const {
    return std::all_of(peaks.begin(), peaks.end(), [&](std::size_t peak) { return peak <= options_.capacity_bytes; });
  }

  // Keeps a packing if it is the smallest that holds the capacity.
  void offer(std::string_view strategy, const std::vector<std::size_t>& offsets, const std::vector<std::size_t>& peaks,
             const std::vector<PlanSlot>& slots, const std::vector<std::uint32_t>& slot_of) {
    found_ = true;
    const std::size_t total = std::accumulate(peaks.begin(), peaks.end(), std::size_t{0});
    if (!holds_capacity(peaks) || (best_.outcome != PlanOutcome::unknown && total >= best_total_)) return;
    best_ = empty_tables();
    best_total_ = total;
    best_.strategy = strategy;
    best_.slots = slots;
    best_.chunks = chunks_;
    best_.outcome = PlanOutcome::optimal;
    for (std::size_t device = 0; device < peaks.size(); ++device) {
      best_.arenas[device].bytes = peaks[device];
      if (peaks[device] > best_.arenas[device].lower_bound_bytes) best_.outcome = PlanOutcome::feasible;
    }
    for (ValueId v = 0; v < best_.places.size(); ++v) {
      const SharedValue& value = shared_.values[v];
      if (value.sharing == Sharing::none) continue;
      ValuePlace& place = best_.places[v];
      place.sharing = value.sharing;
      place.with = value.with;
      place.buffer = value.buffer;
      place.slot = slot_of.empty() ? kNoSlot : slot_of[value.buffer];
      place.offset = offsets[value.buffer] + value.offset;
      place.extent_bytes = lives_[v].extent_bytes;
      place.alignment = lives_[v].alignment;
    }
    if (options_.on_better) options_.on_better(finish());
  }

  // A plan of slots alone was asked for, and there can be none.
  [[noreturn]] void throw_no_slots() const {
    throw ArgumentError(ErrorCode::invalid_argument, {"a plan of slots", "a value has a fixed offset, and slots have none",
                                                      "use the strategy offsets, or take the fixed offset away"});
  }

  Plan finish() const {
    PlanTables tables = best_;
    if (tables.parallel > 1 && tables.outcome != PlanOutcome::unknown && tables.outcome != PlanOutcome::infeasible)
      tables.edges = find_edges(*graph_, tables);
    return PlanMaker::make(graph_, std::move(tables), portfolio_.attempts(), time_ms());
  }

  const Clock::time_point start_ = Clock::now();
  const std::shared_ptr<const Graph> graph_;
  const PlanOptions& options_;
  const NodeList& order_;
  const ChosenStrategies chosen_;
  const NodeRange nodes_;
  const std::vector<Life> lives_;
  const SharingResult shared_;
  const std::vector<BoundProof> proofs_;  // of the lower bounds
  Portfolio portfolio_;
  const Patience patience_;
  std::vector<std::uint32_t> colours_;  // of each buffer, in a parallel plan

  std::vector<PlanChunk> chunks_;
  PlanTables best_;
  std::size_t best_total_ = 0;
  bool found_ = false;  // some packing, though perhaps past the capacity
};

}  // namespace

NodeRange planned_nodes(const Graph& graph, const PlanOptions& options) {
  return options.nodes.value_or(NodeRange{0, static_cast<NodeId>(graph.nodes.size())});
}

std::vector<std::size_t> bounds_in_order(const Graph& graph, const PlanOptions& options, const std::vector<NodeId>& order) {
  const NodeRange nodes = planned_nodes(graph, options);
  const std::vector<Life> lives = find_lives(graph, nodes, options.alignment, order);
  return bounds_of(share_best(graph, nodes, lives, options.inplace, order), graph.devices.size());
}

Plan plan_in_order(std::shared_ptr<const Graph> graph, const PlanOptions& options, const std::vector<NodeId>& order) {
  Plan made = Planner(graph, options, order).run();
  if (made.outcome() != PlanOutcome::infeasible || !options.inplace) return made;
  // Bytes that are shared may be what does not fit: fixed offsets pull others along, and a view keeps its whole alive.
  PlanOptions apart = options;
  apart.inplace = false;
  Plan other = Planner(std::move(graph), apart, order).run();
  return other.has_places() ? other : made;
}

}  // namespace planning

}  // namespace berth

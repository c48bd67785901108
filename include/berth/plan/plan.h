// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/json.h"
#include "berth/export.h"
#include "berth/plan/graph.h"

// Static memory planning: every value of a graph gets an offset in its device's arena before the graph runs, so
// that nothing is allocated while it runs.
//
//     Plan p = plan(graph, {.strategy = "best", .time_limit = 5s});
//     p.peak_bytes();            // how large the arenas are together
//     p.lower_bound_bytes();     // no plan with this reuse can be smaller
//     p.location(value).offset;     // where the value lies
//     Placement mem = place(p, …);                            // plan/placement.h binds it to memory
//
// Planning is a pipeline of functions over plain data: lifetimes of values, reuse by options (in place, views),
// packing. Before a plan is returned it is judged by the verifier (plan/verify.h), which does not depend on how
// the plan was made. Equal graphs and options give equal plans on every machine (except with several threads);
// a time limit is tested between strategies, and between equal steps of one. A `Plan` is immutable: any number
// of threads may read it.
namespace berth {

namespace internal::plan {
struct PlanMaker;
}

enum class PlanOutcome : std::uint8_t {
  optimal,     // the peak is the lower bound
  feasible,    // a valid plan; a smaller one may exist
  infeasible,  // proved, for this order of nodes, both with this plan's reuse and with none: no plan fits the
               // capacity, or fixed offsets overlap
  unknown,     // no plan that fits the capacity was found
};
BERTH_EXPORT std::string_view to_string(PlanOutcome outcome) noexcept;

// Where a value's bytes come from.
enum class Reuse : std::uint8_t {
  none,      // has no location: `ValueLocation::reason` says why
  own,       // bytes of its own
  in_place,  // those of an input that dies here
  identity,  // those of an input, which may live on
  view,      // a range of an input
  joined,    // bytes of its own, which already hold inputs of its node: those whose locations agree with a view
             // option
  kept,      // those where an earlier plan put it: it lives on (`PlanOptions::after`)
};
BERTH_EXPORT std::string_view to_string(Reuse reuse) noexcept;

// Why a value has no location.
enum class UnplannedReason : std::uint8_t { placed, external, dynamic, unknown_size, never_written, outside_range };
BERTH_EXPORT std::string_view to_string(UnplannedReason reason) noexcept;

inline constexpr std::uint32_t kNoSlot = UINT32_MAX;
inline constexpr std::uint32_t kNoBuffer = UINT32_MAX;

// The location of one value. An empty value has a location too, which overlaps none.
struct ValueLocation {
  Reuse reuse = Reuse::none;
  UnplannedReason reason = UnplannedReason::never_written;
  std::uint32_t slot = kNoSlot;      // in a plan of slots: an index into PlanTables::slots
  ValueId with = kNoValue;           // in_place, identity, view: the input
  std::uint32_t buffer = kNoBuffer;  // equal for values that reuse the same bytes by an option; from 0 on
  std::size_t offset = 0;            // from the start of its device's arena
  std::size_t extent_bytes = 0;      // its size, rounded up to its alignment
  std::size_t alignment = 1;         // that of the value, or PlanOptions::alignment when larger

  bool planned() const noexcept { return reuse != Reuse::none; }
  friend bool operator==(const ValueLocation&, const ValueLocation&) = default;
};

// A certificate that an arena cannot be smaller than its lower bound. The verifier recomputes the bound there,
// by slow means of its own, and refuses a plan whose bound it does not find.
struct BoundProof {
  enum class By : std::uint8_t {
    unsaid,     // only in plans read from files that do not name it: the verifier looks at all steps
    live,       // the bound is the sum of the bytes live at one step
    fixed,      // the bound is the end of a fixed buffer that is live at one step
    search,     // an exhaustive search: what is live in an interval of steps cannot be packed into one byte less
    unordered,  // in a parallel plan: the sum of buffers of which no two may share bytes, as neither is surely used
                // for the last time before the other is used
  };
  By by = By::unsaid;
  NodeRange steps = {};              // empty when there are no bytes, or with `unordered`
  std::vector<ValueId> values = {};  // with `unordered`: a value of each of these buffers
  friend bool operator==(const BoundProof&, const BoundProof&) = default;
};
BERTH_EXPORT std::string_view to_string(BoundProof::By by) noexcept;

// The arena of one device; PlanTables::arenas has one for every device of the graph.
struct PlanArena {
  std::size_t bytes = 0;
  std::size_t lower_bound_bytes = 0;  // in extents; at least the most bytes live at once, and the end of every
                                      // fixed buffer
  std::size_t naive_bytes = 0;        // without reuse over time: the sum of all buffers
  BoundProof proof = {};              // of the lower bound
  friend bool operator==(const PlanArena&, const PlanArena&) = default;
};

// A storage that several values use one after another.
struct PlanSlot {
  std::uint32_t device = 0;
  std::size_t bytes = 0;
  std::size_t offset = 0;  // in its device's arena
  friend bool operator==(const PlanSlot&, const PlanSlot&) = default;
};

// A piece of a device's arena with memory of its own: no buffer crosses a chunk boundary, so each chunk can be
// allocated separately, and from another allocator. Where a device has chunks, every buffer on it lies in one
// of them.
struct PlanChunk {
  std::string name = {};  // of its arena option; empty when there is none
  std::uint32_t device = 0;
  std::size_t offset = 0;                 // in its device's arena: the end of the chunk before it, aligned for
                                          // all buffers in it
  std::size_t bytes = 0;                  // in use
  std::size_t capacity_bytes = SIZE_MAX;  // upper limit of `bytes`
  friend bool operator==(const PlanChunk&, const PlanChunk&) = default;
};

// A dependency between nodes, as if `after` read a value of `before`.
struct PlanEdge {
  NodeId before = 0;
  NodeId after = 0;
  friend bool operator==(const PlanEdge&, const PlanEdge&) = default;
};

// A plan as plain data: what a plan file contains and what the verifier judges.
struct PlanTables {
  std::string strategy = {};  // that found the plan
  PlanOutcome outcome = PlanOutcome::unknown;
  NodeRange nodes = {};                     // the part of the graph that is planned
  std::vector<NodeId> order = {};           // execution order, each node once; empty: that of the graph. Not in a
                                            // parallel plan
  int parallel = 1;                         // 1: the nodes run in order. More: concurrently, in any order that
                                            // respects the graph and `edges`
  bool conservative = false;                // parallel: nodes of which it was not known whether one precedes the other
                                            // count as concurrent, so that there may be a smaller plan
  std::vector<std::uint32_t> colours = {};  // of each planned node, in a parallel plan: see plan/parallel.h
  std::size_t alignment = 1;                // minimum for every value
  std::size_t capacity_bytes = SIZE_MAX;    // of each arena
  std::vector<PlanArena> arenas = {};
  std::vector<PlanSlot> slots = {};           // of a plan of slots
  std::vector<PlanChunk> chunks = {};         // by device, then by preference; empty: each arena is contiguous
  std::vector<ValueLocation> locations = {};  // one for each value of the graph
  std::vector<PlanEdge> edges = {};           // dependencies that the plan adds to the graph; only in a parallel plan
  friend bool operator==(const PlanTables&, const PlanTables&) = default;
};

// The result of one strategy.
struct PlanAttempt {
  std::string strategy;
  std::optional<std::size_t> peak_bytes = {};  // nothing when it found no plan
  double time_ms = 0;
  std::string note = {};  // "stopped above the best", "given up: too much is live at once", …; empty: it ran to
                          // its end
};

// What edges buy in a parallel plan: with so many, the nodes need so much.
struct EdgeTrade {
  std::size_t edges = 0;
  std::size_t peak_bytes = 0;
  std::uint64_t longest_path = 0;  // of the graph with these edges, in the costs of its nodes
  friend bool operator==(const EdgeTrade&, const EdgeTrade&) = default;
};

// The result of one order of the nodes.
struct OrderAttempt {
  std::string order;                           // "given", or the rule that made it; with a + when it was
                                               // improved by local search
  std::size_t lower_bound_bytes = 0;           // the most bytes live at once in this order
  std::optional<std::size_t> peak_bytes = {};  // nothing when it was not packed because its bound could not
                                               // win, or when nothing fits
};

class Plan;

// The progress of planning.
struct PlanProgress {
  std::string_view strategy;  // that runs next
  std::size_t done = 0;       // strategies that have run
  std::size_t of = 0;
  std::optional<std::size_t> peak_bytes = {};  // of the best plan so far; nothing when none fits the capacity
};

// One memory of a device, such as a small fast one or a large slow one.
struct ArenaOption {
  std::string name = {};
  std::size_t capacity_bytes = SIZE_MAX;
  std::uint32_t device = 0;
};

// Options of `plan`.
struct PlanOptions {
  // "best" (runs all and keeps the smallest), "offsets" or "slots" (all of one kind), or one by name: see
  // plan_strategies().
  std::string strategy = "best";
  // Slots: the factor by which a reused slot may be larger or smaller; 0: no reuse. Left out, 1 to 16 are
  // tried.
  std::optional<int> match_range = {};
  // "given" keeps the order of the graph's nodes. "best" tries all other orders, and a name (see plan_orders())
  // tries one; another order is taken only if it lowers the packed peak. Every order is a topological one that
  // also respects declared side effects; `PlanTables::order` is the one that was taken.
  std::string order = "given";
  bool inplace = true;  // take in-place, identity and view options
  // More than 1: nodes may run at once, whatever their order in the graph, and only those share bytes of which the
  // graph's own edges say that one ends before the other begins. It is also the number of colours (plan/parallel.h).
  int parallel = 1;
  // Of a parallel plan: up to so many edges may be added where that lowers the peak. A plan with more is never larger.
  std::size_t most_edges = 0;
  std::size_t alignment = 1;              // minimum for every value; a power of two
  std::size_t capacity_bytes = SIZE_MAX;  // upper limit of every arena
  // The memories of a device, the preferred one first: it is filled with the buffers that are used most for the
  // room they take, and what does not fit goes to the next. A device without any has one arena, as large as
  // needed. Only for plans of offsets.
  std::vector<ArenaOption> arenas = {};
  std::size_t max_chunk_bytes = SIZE_MAX;  // upper limit of one allocation: an arena that needs more is split
                                           // into chunks
  std::optional<NodeRange> nodes = {};     // plan only these: what they read from earlier nodes is external,
                                           // what later nodes read survives
  // The plan of an earlier range of this graph, on whose memory this one continues. What lives on of that range,
  // or of those that it continues itself, keeps its location (Reuse::kept): values that a node of this range or a
  // later one reads, and outputs. All other bytes are reused. Its slots keep their order and never shrink. Without
  // `nodes`, all nodes after it are planned. Used during the call only.
  const Plan* after = nullptr;
  std::vector<PlanSlot> slots = {};  // of another plan, for plans of slots to reuse; they keep their order and
                                     // never shrink
  bool slots_are_free = false;       // says that nothing lives in `slots`, which are refused without it
  // When to stop. Without a limit each strategy takes at most a second or so for a part of the timeline, by a
  // limit on steps; with one, the exact search goes on until then, or until the capacity is met when one is
  // given. The limit is for all that plan() does, the verifier included, and is kept within a fifth and 0.2 s. Where
  // it is too short for one verified plan, plan() throws Error(timeout), whose fact needed_ms estimates how long that
  // takes here.
  std::chrono::duration<double> time_limit = std::chrono::duration<double>::max();
  std::uint64_t seed = 0;  // of all random choices; equal seeds give equal plans
  // Threads of the exact search, from 1 to 256. Any number finds the same optimum where there is time to prove
  // it; which of several equal plans more than one thread finds, and how far it comes without a proof, may
  // differ from run to run.
  int threads = 1;
  std::stop_token cancel = {};
  std::function<void(const PlanProgress&)> on_strategy = {};  // called before each strategy, on the calling
                                                              // thread
  std::function<void(const Plan&)> on_better = {};            // called with each better plan, verified, on the
                                                              // calling thread
  // Run every strategy to its end, even those that cannot win, for the table of attempts.
  bool all_strategies = false;
};

// How much of a plan is written to JSON.
enum class PlanJson : unsigned char { summary, with_locations };

class BERTH_EXPORT Plan {
 public:
  // Makes a plan from tables, for readers of files. Throws ArgumentError as Graph::validate does, and
  // (plan_invalid) unless the verifier accepts it.
  Plan(std::shared_ptr<const Graph> graph, PlanTables tables);

  const Graph& graph() const noexcept { return *graph_; }
  const PlanTables& tables() const noexcept { return tables_; }

  // Sums over the arenas. Values have no locations when `outcome()` is infeasible or unknown; the lower bound
  // is valid all the same.
  std::size_t peak_bytes() const noexcept;
  std::size_t lower_bound_bytes() const noexcept;
  std::size_t naive_bytes() const noexcept;
  double ratio() const noexcept;  // peak / lower bound; 1 when there are no bytes
  PlanOutcome outcome() const noexcept { return tables_.outcome; }
  const std::string& strategy() const noexcept { return tables_.strategy; }
  bool has_locations() const noexcept { return outcome() == PlanOutcome::optimal || outcome() == PlanOutcome::feasible; }

  // Throws ArgumentError(out_of_bounds) for a value that is not in the graph.
  const ValueLocation& location(ValueId value) const;

  // Whether a value reuses the bytes of an input of its node, in place or as an identity: taken (with the
  // position of the input), none, or unused (no node reads it).
  enum class Inplace : std::uint8_t { none, taken, unused };
  struct InplaceAnswer {
    Inplace kind = Inplace::none;
    std::uint32_t input = 0;
  };
  InplaceAnswer inplace_of(ValueId value) const;

  // A buffer: what the packers gave an offset to. The values of one buffer reuse its bytes by options. At least
  // one byte.
  struct Buffer {
    std::uint32_t device = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    NodeRange life = {};
    ValueId first = kNoValue;  // of its values, the one written first; the largest if several are
  };
  std::vector<Buffer> buffers() const;

  struct Unplanned {
    ValueId value;
    UnplannedReason reason;
  };
  std::vector<Unplanned> unplanned() const;
  std::map<UnplannedReason, std::size_t> unplanned_by_reason() const;  // the reasons that occur, with how often

  // The node that runs at a step; the step of node n is n where the plan keeps the graph's order. Lifetimes are
  // in steps.
  NodeId node_at(NodeId step) const noexcept {
    return tables_.order.empty() || step < tables_.nodes.begin || step >= tables_.nodes.end ? step
                                                                                            : tables_.order[step - tables_.nodes.begin];
  }
  std::vector<NodeId> nodes_in_order() const;  // all planned nodes

  // The step at which the most bytes are live in a device's arena, and the buffers that are live then, by their
  // first values, largest first.
  struct Peak {
    NodeId step = 0;
    NodeId node = 0;  // that runs at this step
    std::size_t bytes = 0;
    std::vector<ValueId> values;
  };
  Peak at_peak(std::uint32_t device = 0) const;

  // The proof of a device's lower bound, in words: "live at node "conv1"".
  std::string describe_bound(std::uint32_t device = 0) const;

  // The lifetime of a value in steps, half-open: from the step that writes it to one past the last that reads
  // it, or to the end of the planned range when it survives.
  NodeRange life(ValueId value) const;

  // The result of each strategy, in the order in which they ran. Empty in a plan that was read from a file.
  const std::vector<PlanAttempt>& attempts() const noexcept { return attempts_; }
  // Filled unless `order` is "given"; the least bound first.
  const std::vector<OrderAttempt>& orders() const noexcept { return orders_; }
  // Of a parallel plan: what it needs without edges, and with ever more of them; the last is this plan. Fewer bytes
  // from one to the next. Empty in a plan that was read from a file.
  const std::vector<EdgeTrade>& trades() const noexcept { return trades_; }
  // Total planning time, verification included.
  double time_ms() const noexcept { return time_ms_; }

  // Writes {"buffers", "naive_bytes", "lower_bound_bytes", "peak_bytes", "ratio", "strategy", "outcome",
  // "unplanned", "unplanned_by_reason", "time_ms", …} as members of the open object; `with_locations` adds every location.
  void write_json(JsonWriter& json, PlanJson detail = PlanJson::summary) const;

 private:
  friend struct internal::plan::PlanMaker;

  // What the plan keeps of a value's lifetime.
  struct Use {
    NodeId writer = UINT32_MAX;  // UINT32_MAX: no writer in the range
    NodeRange life = {};
    bool used = false;
  };

  Plan(std::shared_ptr<const Graph> graph, PlanTables tables, std::vector<Use> uses, const std::vector<PlanAttempt>& attempts,
       double time_ms);

  std::shared_ptr<const Graph> graph_;
  PlanTables tables_;
  std::vector<Use> uses_;  // one for each value
  std::vector<PlanAttempt> attempts_;
  std::vector<OrderAttempt> orders_;
  std::vector<EdgeTrade> trades_;
  double time_ms_ = 0;
};

// Plans a graph. Throws ArgumentError: everything that Graph::validate refuses; unknown options, and options
// that contradict one another.
BERTH_EXPORT Plan plan(Graph graph, const PlanOptions& options = {});
BERTH_EXPORT Plan plan(std::shared_ptr<const Graph> graph, const PlanOptions& options = {});

// The name of a strategy, and what it does in a few words.
struct PlanStrategy {
  std::string_view name;
  std::string_view kind;  // "offsets" or "slots"
  std::string_view does;
};
BERTH_EXPORT std::span<const PlanStrategy> plan_strategies() noexcept;

// The name of an order, and what it does in a few words. "best" tries them all, and improves the most
// promising.
struct PlanOrder {
  std::string_view name;
  std::string_view does;
};
BERTH_EXPORT std::span<const PlanOrder> plan_orders() noexcept;

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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

// Where every value of a graph lives, decided before it runs: an offset in one arena for each device, so that nothing is allocated while
// the graph runs.
//
//     Plan p = plan(graph, {.strategy = "best", .time_limit = 5s});
//     p.peak_bytes();            // how large the arenas are together
//     p.lower_bound_bytes();     // no plan with this sharing can be smaller
//     p.place(value).offset;     // where the value lies
//     Placement mem = place(p, …);                            // plan/placement.h binds it to memory
//
// Planning is a pipeline of functions over plain data: the lives of values, which of them share bytes, packing. Every plan is judged by the
// verifier (plan/verify.h), which knows nothing of how it was made, before it is returned. Equal graphs and options give equal plans on every
// machine (but for those with several threads); a time limit stops between strategies, and between equal steps of one.
namespace berth {

namespace internal::plan {
struct PlanMaker;
}

enum class PlanOutcome : std::uint8_t {
  optimal,     // the peak is the lower bound
  feasible,    // a plan, and perhaps there is a smaller one
  infeasible,  // proved, for this order of nodes, with bytes shared as in this plan and with none shared: no plan holds the capacity, or
               // fixed offsets overlap
  unknown,     // no plan that holds the capacity was found
};
BERTH_EXPORT std::string_view to_string(PlanOutcome outcome) noexcept;

// How a value came by its bytes.
enum class Sharing : std::uint8_t {
  none,      // has no place: `Place::reason` says why
  own,       // nobody's before
  in_place,  // took those of a dying input
  identity,  // has those of an input that may live on
  view,      // is a range of an input
  joined,    // nobody's before, and inputs of its node lie in it already: those whose places agree with a view option
};
BERTH_EXPORT std::string_view to_string(Sharing sharing) noexcept;

// Why a value has no place.
enum class UnplannedReason : std::uint8_t { placed, external, dynamic, unknown_size, never_written, outside_range };
BERTH_EXPORT std::string_view to_string(UnplannedReason reason) noexcept;

inline constexpr std::uint32_t kNoSlot = UINT32_MAX;
inline constexpr std::uint32_t kNoBuffer = UINT32_MAX;

// Where one value lies. A value of no bytes has a place too, which conflicts with none.
struct ValuePlace {
  Sharing sharing = Sharing::none;
  UnplannedReason reason = UnplannedReason::never_written;
  std::uint32_t slot = kNoSlot;      // in a plan of slots: an index into PlanTables::slots
  ValueId with = kNoValue;           // in_place, identity, view: the input
  std::uint32_t buffer = kNoBuffer;  // the same for values that share bytes by an option, from 0 on
  std::size_t offset = 0;            // from the start of its device's arena
  std::size_t extent_bytes = 0;      // its size, rounded up to its alignment
  std::size_t alignment = 1;         // that of the value, or of the options when larger

  bool planned() const noexcept { return sharing != Sharing::none; }
  friend bool operator==(const ValuePlace&, const ValuePlace&) = default;
};

// What shows that an arena cannot be smaller than its lower bound. The verifier looks there, by slow means of its own, and refuses a plan whose
// bound it does not find there.
struct BoundProof {
  enum class By : std::uint8_t {
    unsaid,  // only in plans that were read from files which do not say it: the verifier looks everywhere
    live,    // so many bytes are live at one step
    fixed,   // something that is live at one step is fixed where it ends so high
    search,  // what is live in a stretch of steps cannot be laid into a byte less, in whatever way
  };
  By by = By::unsaid;
  NodeRange steps = {};  // empty when there are no bytes
  friend bool operator==(const BoundProof&, const BoundProof&) = default;
};
BERTH_EXPORT std::string_view to_string(BoundProof::By by) noexcept;

// The bytes of one device; PlanTables::arenas has one for every device of the graph.
struct PlanArena {
  std::size_t bytes = 0;
  std::size_t lower_bound_bytes = 0;  // in extents; at least what is live at once, and where what is fixed ends
  std::size_t naive_bytes = 0;        // without reuse: all bytes that are not shared by an option
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

// A piece of a device's arena that is memory of its own: no buffer reaches from one chunk into another, so that each can be allocated by
// itself, and from another allocator. Where a device has chunks, everything on it lies in one of them.
struct PlanChunk {
  std::string name = {};  // of its arena option; empty when there is none
  std::uint32_t device = 0;
  std::size_t offset = 0;                 // in its device's arena: where the ones before it end, and aligned for all that lies in it
  std::size_t bytes = 0;                  // in use
  std::size_t capacity_bytes = SIZE_MAX;  // that it may have
  friend bool operator==(const PlanChunk&, const PlanChunk&) = default;
};

// One node waits for another, as if it read something of it.
struct PlanEdge {
  NodeId before = 0;
  NodeId after = 0;
  friend bool operator==(const PlanEdge&, const PlanEdge&) = default;
};

// A plan as plain data: what the file holds and the verifier judges.
struct PlanTables {
  std::string strategy = {};  // the one that found it
  PlanOutcome outcome = PlanOutcome::unknown;
  NodeRange nodes = {};                   // what of the graph is planned
  std::vector<NodeId> order = {};         // how its nodes run, each once; empty: as the graph has them. Not in a parallel plan
  int parallel = 1;                       // 1: the nodes run in order. More: in any order, at once, that keeps to the graph and `edges`
  std::size_t alignment = 1;              // the least of every value
  std::size_t capacity_bytes = SIZE_MAX;  // of each arena
  std::vector<PlanArena> arenas = {};
  std::vector<PlanSlot> slots = {};     // of a plan of slots
  std::vector<PlanChunk> chunks = {};   // by device, then by preference; empty: each arena is one piece
  std::vector<ValuePlace> places = {};  // one for each value of the graph
  std::vector<PlanEdge> edges = {};     // that the plan adds to the graph; only in a parallel plan
  friend bool operator==(const PlanTables&, const PlanTables&) = default;
};

// What came of one strategy.
struct PlanAttempt {
  std::string strategy;
  std::optional<std::size_t> peak_bytes = {};  // nothing when it came to none
  double time_ms = 0;
  std::string note = {};  // "stopped above the best", "given up: too much is live at once", …; empty: it ran to its end
};

// What came of one order of the nodes.
struct OrderAttempt {
  std::string order;                           // "given", or the rule that made it; with a + when it was improved afterwards
  std::size_t lower_bound_bytes = 0;           // the most that is live at once in this order
  std::optional<std::size_t> peak_bytes = {};  // when it was packed; nothing when its bound could not win, or nothing fits
};

class Plan;

// How far planning is.
struct PlanProgress {
  std::string_view strategy;  // that runs next
  std::size_t done = 0;       // strategies so far
  std::size_t of = 0;
  std::optional<std::size_t> peak_bytes = {};  // of the best so far; nothing when none holds the capacity
};

// Memory that a device has, such as a small fast one and a large slow one.
struct ArenaOption {
  std::string name = {};
  std::size_t capacity_bytes = SIZE_MAX;
  std::uint32_t device = 0;
};

// What `plan` is asked.
struct PlanOptions {
  // "best" (all, and the smallest is kept), "offsets" or "slots" (all of one kind), or one by name: see plan_strategies().
  std::string strategy = "best";
  // Slots: how much larger or smaller a reused one may be, as a factor; 0: no sharing. Left out, 1 to 16 are tried.
  std::optional<int> match_range = {};
  // "given" keeps the order of the graph's nodes. "best" looks for others, or one by name looks at one (see plan_orders()), and takes it only
  // if the packed peak falls. Every order keeps to what nodes read and to declared side effects; `PlanTables::order` is the one that was taken.
  std::string order = "given";
  bool inplace = true;                    // take options in place, of identity, and views
  int parallel = 1;                       // branches may run at once, in so many colours at most
  std::size_t alignment = 1;              // of every value at least; a power of two
  std::size_t capacity_bytes = SIZE_MAX;  // that no arena may pass
  // The memories of a device, the preferred one first: it is filled with what is used most for the room that it takes, and what does not fit
  // goes to the next. A device without any has one arena as large as it must be. Only for plans of offsets.
  std::vector<ArenaOption> arenas = {};
  std::size_t max_chunk_bytes = SIZE_MAX;  // no piece of memory is larger: an arena that needs more has several chunks
  std::optional<NodeRange> nodes = {};     // only these: what they read from before is external, what is read after survives
  std::vector<PlanSlot> slots = {};  // of an earlier plan, to be used again by plans of slots; they keep their order and size at least
  // When to stop. Without a limit nothing takes more than a second or so for a part of the timeline, by counting steps; with one, the exact search
  // goes on until then, or until the capacity is held when one is given.
  std::chrono::duration<double> time_limit = std::chrono::duration<double>::max();
  std::uint64_t seed = 0;  // of what is left to chance; equal ones give equal plans
  // That search at once, for parts that are searched exactly; from 1 to 256. More than one find the same optimum where there is time to prove it; which of
  // several equal plans they find, and how far they come without a proof, may differ from run to run.
  int threads = 1;
  std::stop_token cancel = {};
  std::function<void(const PlanProgress&)> on_strategy = {};  // before each strategy, on this thread
  std::function<void(const Plan&)> on_better = {};            // with each better plan, verified, on this thread
  bool all_strategies = false;  // run every strategy to its end, also those that cannot win, for the table of attempts
};

class BERTH_EXPORT Plan {
 public:
  // A plan from tables: for readers. Throws ArgumentError as Graph::validate does, and (plan_invalid) unless the verifier accepts it.
  Plan(std::shared_ptr<const Graph> graph, PlanTables tables);

  const Graph& graph() const noexcept { return *graph_; }
  const PlanTables& tables() const noexcept { return tables_; }

  // Sums over the arenas. No plan has values where `outcome()` is infeasible or unknown; its lower bound holds all the same.
  std::size_t peak_bytes() const noexcept;
  std::size_t lower_bound_bytes() const noexcept;
  std::size_t naive_bytes() const noexcept;
  double ratio() const noexcept;  // peak / lower bound; 1 when there are no bytes
  PlanOutcome outcome() const noexcept { return tables_.outcome; }
  const std::string& strategy() const noexcept { return tables_.strategy; }
  bool has_places() const noexcept { return outcome() == PlanOutcome::optimal || outcome() == PlanOutcome::feasible; }

  // Throws ArgumentError(out_of_bounds) for a value that the graph has not.
  const ValuePlace& place(ValueId value) const;

  // Whether a value has the bytes of an input of its node, in place or as an identity, and which: the position of the input, none, or
  // unused (nobody reads it).
  enum class Inplace : std::uint8_t { none, taken, unused };
  struct InplaceAnswer {
    Inplace kind = Inplace::none;
    std::uint32_t input = 0;
  };
  InplaceAnswer inplace_of(ValueId value) const;

  // What the packers placed: ranges with the values that share them, of at least one byte.
  struct Buffer {
    std::uint32_t device = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    NodeRange life = {};
    ValueId first = kNoValue;  // of its values, the one written first; the largest if there are several
  };
  std::vector<Buffer> buffers() const;

  struct Unplanned {
    ValueId value;
    UnplannedReason reason;
  };
  std::vector<Unplanned> unplanned() const;

  // Nodes in the order in which they run, a step each; the step of node n is n where the plan keeps the graph's order. Lives are in steps.
  NodeId node_at(NodeId step) const noexcept {
    return tables_.order.empty() || step < tables_.nodes.begin || step >= tables_.nodes.end ? step
                                                                                            : tables_.order[step - tables_.nodes.begin];
  }
  std::vector<NodeId> nodes_in_order() const;  // all that are planned

  // The step at which the most bytes are live in a device's arena, and the first values of the buffers that hold them, largest first.
  struct Peak {
    NodeId step = 0;
    NodeId node = 0;  // that runs then
    std::size_t bytes = 0;
    std::vector<ValueId> values;
  };
  Peak at_peak(std::uint32_t device = 0) const;

  // What shows the lower bound of a device, in words: "live at node "conv1"".
  std::string describe_bound(std::uint32_t device = 0) const;

  // The life of a value in steps: from the one that writes it to the last that reads it, or one past the last when it survives. Half open.
  NodeRange life(ValueId value) const;

  // What each strategy came to, in the order in which they ran. Empty in a plan that was read.
  const std::vector<PlanAttempt>& attempts() const noexcept { return attempts_; }
  const std::vector<OrderAttempt>& orders() const noexcept { return orders_; }  // with `order` other than "given": the least bound first
  double time_ms() const noexcept { return time_ms_; }                          // of all of it

  // {"buffers", "naive_bytes", "lower_bound_bytes", "peak_bytes", "ratio", "strategy", "outcome", "unplanned", "time_ms", …} as members of an
  // object that is open; with `full` every placement.
  void write_json(JsonWriter& json, bool full) const;

 private:
  friend struct internal::plan::PlanMaker;

  // What the graph says of a value.
  struct Use {
    NodeId writer = UINT32_MAX;  // none in the range
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
  double time_ms_ = 0;
};

// Throws ArgumentError: everything that Graph::validate refuses; options that are not there or contradict one another.
BERTH_EXPORT Plan plan(Graph graph, const PlanOptions& options = {});
BERTH_EXPORT Plan plan(std::shared_ptr<const Graph> graph, const PlanOptions& options = {});

// A strategy by name, with what it does in a few words.
struct PlanStrategy {
  std::string_view name;
  std::string_view kind;  // "offsets" or "slots"
  std::string_view does;
};
BERTH_EXPORT std::span<const PlanStrategy> plan_strategies() noexcept;

// An order by name, with what it does in a few words. "best" tries them all, and improves the most promising.
struct PlanOrder {
  std::string_view name;
  std::string_view does;
};
BERTH_EXPORT std::span<const PlanOrder> plan_orders() noexcept;

}  // namespace berth

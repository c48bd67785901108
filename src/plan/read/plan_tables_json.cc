// SPDX-License-Identifier: Apache-2.0
#include "plan/read/plan_tables_json.h"
#include "berth/base/json.h"

namespace berth::internal::plan::read {

namespace {

constexpr std::size_t kNoCapacity = SIZE_MAX;

// ---- Reading.

// Parses an enumerator by name; `last` is the last one.
template <class Enum>
Enum enum_at(const JsonPosition& at, Enum last) {
  std::string names;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto candidate = static_cast<Enum>(i);
    if (to_string(candidate) == at.text()) return candidate;
    names += text::join(i == 0 ? "" : ", ", to_string(candidate));
  }
  at.refuse(text::join("unknown name ", text::quoted(at.text())), text::join("use one of: ", names));
}

std::pair<NodeId, NodeId> pair_at(const JsonPosition& at) {
  std::vector<NodeId> found;
  at.each_item([&](const JsonPosition& item) { found.push_back(item.number_as<NodeId>()); });
  if (found.size() != 2) at.refuse(text::join("expected two numbers, not ", found.size()), "give two nodes");
  return {found[0], found[1]};
}

std::vector<PlanEdge> edges_at(const JsonPosition& at) {
  std::vector<PlanEdge> edges;
  edges.reserve(at.items());
  at.each_item([&](const JsonPosition& edge) {
    const auto [before, after] = pair_at(edge);
    edges.push_back({before, after});
  });
  return edges;
}

template <class Number>
std::vector<Number> numbers_at(const JsonPosition& at) {
  std::vector<Number> numbers;
  numbers.reserve(at.items());
  at.each_item([&](const JsonPosition& item) { numbers.push_back(item.number_as<Number>()); });
  return numbers;
}

constexpr JsonMember<BoundProof> kProofMembers[] = {
    {"by", [](const JsonPosition& at, BoundProof& proof) { proof.by = enum_at(at, BoundProof::By::unordered); }, true},
    {"steps",
     [](const JsonPosition& at, BoundProof& proof) {
       const auto [begin, end] = pair_at(at);
       proof.steps = {begin, end};
     },
     true},
    {"values", [](const JsonPosition& at, BoundProof& proof) { proof.values = numbers_at<ValueId>(at); }},
};

constexpr JsonMember<PlanArena> kArenaMembers[] = {
    {"bytes", [](const JsonPosition& at, PlanArena& arena) { arena.bytes = at.number(); }, true},
    {"lower_bound_bytes", [](const JsonPosition& at, PlanArena& arena) { arena.lower_bound_bytes = at.number(); }, true},
    {"naive_bytes", [](const JsonPosition& at, PlanArena& arena) { arena.naive_bytes = at.number(); }, true},
    {"proof", [](const JsonPosition& at, PlanArena& arena) { read_members(at, kProofMembers, arena.proof); }},
};

constexpr JsonMember<PlanSlot> kSlotMembers[] = {
    {"device", [](const JsonPosition& at, PlanSlot& slot) { slot.device = at.number_as<std::uint32_t>(); }},
    {"bytes", [](const JsonPosition& at, PlanSlot& slot) { slot.bytes = at.number(); }, true},
    {"offset", [](const JsonPosition& at, PlanSlot& slot) { slot.offset = at.number(); }, true},
};

constexpr JsonMember<PlanChunk> kChunkMembers[] = {
    {"name", [](const JsonPosition& at, PlanChunk& chunk) { chunk.name = at.text(); }},
    {"device", [](const JsonPosition& at, PlanChunk& chunk) { chunk.device = at.number_as<std::uint32_t>(); }},
    {"offset", [](const JsonPosition& at, PlanChunk& chunk) { chunk.offset = at.number(); }, true},
    {"bytes", [](const JsonPosition& at, PlanChunk& chunk) { chunk.bytes = at.number(); }, true},
    {"capacity_bytes", [](const JsonPosition& at, PlanChunk& chunk) { chunk.capacity_bytes = at.is_null() ? kNoCapacity : at.number(); }},
};

constexpr JsonMember<ValueLocation> kLocationMembers[] = {
    {"sharing", [](const JsonPosition& at, ValueLocation& location) { location.reuse = enum_at(at, Reuse::kept); }},
    {"reason", [](const JsonPosition& at, ValueLocation& location) { location.reason = enum_at(at, UnplannedReason::outside_range); }},
    {"slot", [](const JsonPosition& at, ValueLocation& location) { location.slot = at.number_as<std::uint32_t>(); }},
    {"with", [](const JsonPosition& at, ValueLocation& location) { location.with = at.number_as<ValueId>(); }},
    {"buffer", [](const JsonPosition& at, ValueLocation& location) { location.buffer = at.number_as<std::uint32_t>(); }},
    {"offset", [](const JsonPosition& at, ValueLocation& location) { location.offset = at.number(); }},
    {"extent_bytes", [](const JsonPosition& at, ValueLocation& location) { location.extent_bytes = at.number(); }},
    {"alignment", [](const JsonPosition& at, ValueLocation& location) { location.alignment = at.number(); }},
};

constexpr ValueLocation kUsualLocation = {.reuse = Reuse::own, .reason = UnplannedReason::placed};

// The sums are validated once the arenas are known.
struct TablesDraft {
  PlanTables tables;
  std::optional<JsonPosition> peak_bytes;
  std::optional<JsonPosition> lower_bound_bytes;
};

void read_nodes(const JsonPosition& at, TablesDraft& draft) {
  const auto [begin, end] = pair_at(at);
  draft.tables.nodes = {begin, end};
}

constexpr JsonMember<TablesDraft> kTablesMembers[] = {
    {"strategy", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.strategy = at.text(); }, true},
    {"outcome", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.outcome = enum_at(at, PlanOutcome::unknown); }, true},
    {"peak_bytes", [](const JsonPosition& at, TablesDraft& draft) { draft.peak_bytes = at; }},
    {"lower_bound_bytes", [](const JsonPosition& at, TablesDraft& draft) { draft.lower_bound_bytes = at; }},
    {"nodes", read_nodes, true},
    {"order", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.order = numbers_at<NodeId>(at); }},
    {"parallel", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.parallel = at.number_as<int>(); }},
    {"conservative", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.conservative = at.flag(); }},
    {"colours", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.colours = numbers_at<std::uint32_t>(at); }},
    {"alignment", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.alignment = at.number(); }},
    {"capacity_bytes",
     [](const JsonPosition& at, TablesDraft& draft) { draft.tables.capacity_bytes = at.is_null() ? kNoCapacity : at.number(); }},
    {"arenas", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.arenas = read_list(at, kArenaMembers); }, true},
    {"slots", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.slots = read_list(at, kSlotMembers); }},
    {"chunks", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.chunks = read_list(at, kChunkMembers); }},
    {"places", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.locations = read_list(at, kLocationMembers, kUsualLocation); },
     true},
    {"edges", [](const JsonPosition& at, TablesDraft& draft) { draft.tables.edges = edges_at(at); }},
};

// Nothing when the sum overflows.
std::optional<std::size_t> sum_of(const std::vector<PlanArena>& arenas, std::size_t PlanArena::*member) {
  std::optional<std::size_t> sum = 0;
  for (const PlanArena& arena : arenas)
    if (sum) sum = try_add(*sum, arena.*member);
  return sum;
}

void check_sum(const std::optional<JsonPosition>& at, const std::optional<std::size_t>& sum) {
  if (!at || at->number() == sum) return;
  at->refuse_argument(
      ErrorCode::plan_invalid,
      sum ? text::join("it is ", at->number(), ", and the arenas come to ", *sum) : "the sum of the arenas does not fit in 64 bits",
      "take the file as it was written, or plan again");
}

// ---- Writing.

template <class T>
void member_unless(JsonWriter& json, std::string_view name, const T& value, const T& usual) {
  if (value != usual) json.member(name, value);
}

void write_position(const ValueLocation& position, JsonWriter& json) {
  json.begin_object();
  member_unless(json, "sharing", to_string(position.reuse), to_string(kUsualLocation.reuse));
  member_unless(json, "reason", to_string(position.reason), to_string(kUsualLocation.reason));
  member_unless(json, "slot", position.slot, kUsualLocation.slot);
  member_unless(json, "with", position.with, kUsualLocation.with);
  member_unless(json, "buffer", position.buffer, kUsualLocation.buffer);
  member_unless(json, "offset", position.offset, kUsualLocation.offset);
  member_unless(json, "extent_bytes", position.extent_bytes, kUsualLocation.extent_bytes);
  member_unless(json, "alignment", position.alignment, kUsualLocation.alignment);
  json.end_object();
}

void write_pair(NodeId first, NodeId second, JsonWriter& json) { json.begin_array().value(first).value(second).end_array(); }

void write_number(const std::uint32_t& number, JsonWriter& json) { json.value(number); }

template <class Item>
void write_list(std::string_view name, const std::vector<Item>& items, void (*write_item)(const Item&, JsonWriter&), JsonWriter& json) {
  json.key(name).begin_array();
  for (const Item& item : items) write_item(item, json);
  json.end_array();
}

void write_arena(const PlanArena& arena, JsonWriter& json) {
  json.begin_object().member("bytes", arena.bytes).member("lower_bound_bytes", arena.lower_bound_bytes);
  json.member("naive_bytes", arena.naive_bytes);
  if (arena.proof.by != BoundProof::By::unsaid) {
    json.key("proof").begin_object().member("by", to_string(arena.proof.by)).key("steps");
    write_pair(arena.proof.steps.begin, arena.proof.steps.end, json);
    if (!arena.proof.values.empty()) write_list("values", arena.proof.values, write_number, json);
    json.end_object();
  }
  json.end_object();
}

void write_slot(const PlanSlot& slot, JsonWriter& json) {
  json.begin_object().member("device", slot.device).member("bytes", slot.bytes).member("offset", slot.offset).end_object();
}

void write_chunk(const PlanChunk& chunk, JsonWriter& json) {
  json.begin_object().member("name", chunk.name).member("device", chunk.device).member("offset", chunk.offset);
  json.member("bytes", chunk.bytes).key("capacity_bytes");
  chunk.capacity_bytes == kNoCapacity ? json.null() : json.value(chunk.capacity_bytes);
  json.end_object();
}

void write_edge(const PlanEdge& edge, JsonWriter& json) { write_pair(edge.before, edge.after, json); }

void write_figures(const PlanTables& tables, JsonWriter& json) {
  json.member("strategy", tables.strategy).member("outcome", to_string(tables.outcome));
  if (const auto peak = sum_of(tables.arenas, &PlanArena::bytes)) json.member("peak_bytes", *peak);
  if (const auto bound = sum_of(tables.arenas, &PlanArena::lower_bound_bytes)) json.member("lower_bound_bytes", *bound);
  json.key("nodes");
  write_pair(tables.nodes.begin, tables.nodes.end, json);
  if (!tables.order.empty()) write_list("order", tables.order, write_number, json);
  json.member("parallel", tables.parallel);
  member_unless(json, "conservative", tables.conservative, false);
  if (!tables.colours.empty()) write_list("colours", tables.colours, write_number, json);
  json.member("alignment", tables.alignment).key("capacity_bytes");
  if (tables.capacity_bytes == kNoCapacity)
    json.null();
  else
    json.value(tables.capacity_bytes);
}

}  // namespace

PlanTables tables_from_json(const JsonPosition& object) {
  TablesDraft draft;
  read_members(object, kTablesMembers, draft);
  check_sum(draft.peak_bytes, sum_of(draft.tables.arenas, &PlanArena::bytes));
  check_sum(draft.lower_bound_bytes, sum_of(draft.tables.arenas, &PlanArena::lower_bound_bytes));
  return std::move(draft.tables);
}

void tables_to_json(const PlanTables& tables, JsonWriter& json) {
  json.begin_object();
  write_figures(tables, json);
  write_list("arenas", tables.arenas, write_arena, json);
  write_list("slots", tables.slots, write_slot, json);
  if (!tables.chunks.empty()) write_list("chunks", tables.chunks, write_chunk, json);
  write_list("places", tables.locations, write_position, json);
  write_list("edges", tables.edges, write_edge, json);
  json.end_object();
}

}  // namespace berth::internal::plan::read

// SPDX-License-Identifier: Apache-2.0
#include "plan/read/runtime_graph.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/limited.h"
#include "base/refuse.h"
#include "berth/base/json.h"
#include "berth/plan/runtime_graph.h"

namespace berth::internal::plan::read {

namespace {

constexpr NodeId kNoNode = UINT32_MAX;
constexpr std::int64_t kNoStorage = -1;
constexpr std::string_view kStorageIds = "storage_id";
constexpr std::string_view kStorageOffsets = "storage_offset";

// ---- What a file says, before it is a graph.

struct FileParts {
  std::optional<JsonPosition> nodes;
  std::optional<JsonPosition> arg_nodes;
  std::optional<JsonPosition> heads;
  std::optional<JsonPosition> rows;
  std::optional<JsonPosition> attrs;
};

constexpr JsonMember<FileParts> kRuntimeMembers[] = {
    {"nodes", [](const JsonPosition& at, FileParts& file) { file.nodes = at; }, true},
    {"arg_nodes", [](const JsonPosition& at, FileParts& file) { file.arg_nodes = at; }, true},
    {"heads", [](const JsonPosition& at, FileParts& file) { file.heads = at; }, true},
    {"node_row_ptr", [](const JsonPosition& at, FileParts& file) { file.rows = at; }, true},
    {"attrs", [](const JsonPosition& at, FileParts& file) { file.attrs = at; }, true},
};

struct AttrParts {
  std::optional<JsonPosition> shape;
  std::optional<JsonPosition> dltype;
  std::optional<JsonPosition> dtype;
  std::optional<JsonPosition> storage_id;
  std::optional<JsonPosition> device_index;
};

constexpr JsonMember<AttrParts> kRuntimeAttrMembers[] = {
    {"shape", [](const JsonPosition& at, AttrParts& attrs) { attrs.shape = at; }, true},
    {"dltype", [](const JsonPosition& at, AttrParts& attrs) { attrs.dltype = at; }},
    {"dtype", [](const JsonPosition& at, AttrParts& attrs) { attrs.dtype = at; }},
    {kStorageIds, [](const JsonPosition& at, AttrParts& attrs) { attrs.storage_id = at; }},
    {"device_index", [](const JsonPosition& at, AttrParts& attrs) { attrs.device_index = at; }},
};

struct NodeParts {
  std::string op;
  std::string name;
  std::optional<JsonPosition> inputs;
  std::optional<JsonPosition> control_deps;
  bool runs_nothing = false;  // its function is "__nop"
};

void read_function(const JsonPosition& at, NodeParts& node) {
  at.each_member([&](const JsonPosition& member) {
    if (member.key() == "func_name") node.runs_nothing = member.text() == "__nop";
  });
}

constexpr JsonMember<NodeParts> kRuntimeNodeMembers[] = {
    {"op", [](const JsonPosition& at, NodeParts& node) { node.op = at.text(); }, true},
    {"name", [](const JsonPosition& at, NodeParts& node) { node.name = at.text(); }, true},
    {"inputs", [](const JsonPosition& at, NodeParts& node) { node.inputs = at; }, true},
    {"control_deps", [](const JsonPosition& at, NodeParts& node) { node.control_deps = at; }},
    {"attrs", read_function},
    {"attr", read_function},
};

// ---- Types. An element takes whole bytes.

struct ElementType {
  std::size_t bytes;
  std::optional<DType> dtype;  // where berth has it too
};

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeInfo& one : all_dtypes())
    if (one.name == name) return one.dtype;
  return std::nullopt;
}

// TVM's names: "float32", "int4", "float32x4" for four lanes, "bool", "handle".
std::optional<ElementType> parse_element(std::string_view name) {
  if (name == "bool") return ElementType{1, DType::boolean};
  if (name.empty() || name == "handle") return ElementType{sizeof(void*), std::nullopt};
  const std::size_t digits = name.find_first_of("0123456789");
  if (digits == std::string_view::npos) return std::nullopt;
  std::size_t at = digits;
  const auto number = [&]() -> std::size_t {
    std::size_t value = 0;
    for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && value < 1024; ++at)
      value = 10 * value + static_cast<std::size_t>(name[at] - '0');
    return value;
  };
  const std::size_t bits = number();
  std::size_t lanes = 1;
  if (at < name.size() && name[at] == 'x') {
    ++at;
    lanes = number();
  }
  const bool is_whole = at == name.size() || name[at] == '_';  // as in float8_e4m3fn
  if (!is_whole || bits == 0 || bits > 1024 || lanes == 0 || lanes > 1024) return std::nullopt;
  ElementType type{(bits * lanes + 7) / 8, std::nullopt};
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {{"float", "f"}, {"int", "i"}, {"uint", "u"}, {"bfloat", "bf"}};
  for (const auto& [theirs, ours] : kKinds)
    if (name.substr(0, digits) == theirs && lanes == 1 && at == name.size()) type.dtype = dtype_named(text::join(ours, bits));
  return type;
}

// MXNet's numbers.
std::optional<ElementType> element_numbered(std::int64_t number) {
  constexpr DType kNumbered[] = {DType::f32,     DType::f64, DType::f16, DType::u8,  DType::i32, DType::i8,  DType::i64,
                                 DType::boolean, DType::i16, DType::u16, DType::u32, DType::u64, DType::bf16};
  if (number < 0 || number >= std::ssize(kNumbered)) return std::nullopt;
  const DType dtype = kNumbered[number];
  return ElementType{size_bytes(dtype), dtype};
}

std::string device_named(std::int64_t group) {
  if (group == 1) return "cpu:0";
  return group == 2 ? "cuda:0" : text::join("device ", group);
}

// ---- The graph of a file.

class RuntimeReader {
 public:
  explicit RuntimeReader(const JsonPosition& top) {
    read_members(top, kRuntimeMembers, file_, UnknownMembers::ignored);
    read_members(*file_.attrs, kRuntimeAttrMembers, attrs_, UnknownMembers::ignored);
    read_rows();
    read_entries();
    read_nodes();
    read_arguments();
    read_heads();
    graph_.validate();
  }

  Graph& graph() noexcept { return graph_; }
  // Of each entry: its value, and the storage that the file gives it, or kNoStorage.
  const std::vector<ValueId>& values() const noexcept { return values_; }
  std::int64_t storage(std::size_t entry) const noexcept { return storages_.empty() ? kNoStorage : storages_[entry]; }

 private:
  // ---- Entries: the outputs of all nodes, one after the other.

  void read_rows() {
    const std::size_t nodes = file_.nodes->items();
    base::reserve(rows_, file_.rows->items());
    file_.rows->each_item([&](const JsonPosition& at) {
      base::checkpoint();
      const auto row = at.number_as<std::uint32_t>();
      if (rows_.empty() ? row != 0 : row < rows_.back()) at.refuse("it is not a start of entries", "let them begin at 0 and never fall");
      base::append(rows_, row);
    });
    if (rows_.empty() || rows_.size() - 1 != nodes)
      file_.rows->refuse(text::join("there are ", rows_.size(), " starts of entries for ", nodes, " nodes"),
                         "give one for each node, and the end");
  }

  std::size_t entries() const noexcept { return rows_.back(); }

  // The list of an attribute, which is written as ["list_int", [...]].
  static JsonPosition list_of(const JsonPosition& attr, std::string_view kind) {
    std::optional<JsonPosition> list;
    attr.each_item([&](const JsonPosition& at) {
      if (at.index() == 0 && at.text() != kind) at.refuse(text::join("it is ", text::quoted(at.text())), text::join("write \"", kind, '"'));
      if (at.index() == 1) list = at;
      if (at.index() > 1) at.refuse("it is one too many", "give the kind of the list, and the list");
    });
    if (!list) attr.refuse("it has no list", text::join("write [\"", kind, "\", [...]]"));
    return *list;
  }

  template <class Visit>
  void each_entry(const JsonPosition& attr, std::string_view kind, Visit visit) const {
    const JsonPosition list = list_of(attr, kind);
    std::size_t count = 0;
    list.each_item([&](const JsonPosition& at) {
      base::checkpoint();
      if (++count <= entries()) visit(at);
    });
    if (count != entries())
      list.refuse(text::join("it has ", count, " items, and the nodes have ", entries(), " entries"), "give one for each entry");
  }

  void read_entries() {
    if (!attrs_.dltype && !attrs_.dtype) file_.attrs->refuse_missing("dltype");
    // The shapes decide how many there are: node_row_ptr alone may claim any number.
    each_entry(*attrs_.shape, "list_shape", [&](const JsonPosition& at) { base::append(drafts_, GraphValue{.shape = shape_at(at)}); });
    if (attrs_.dltype)
      each_entry(*attrs_.dltype, "list_str", [&](const JsonPosition& at) {
        const std::optional<ElementType> type = parse_element(at.text());
        if (!type)
          at.refuse(text::join(text::quoted(at.text()), " is no type of elements"), "write float32, int8, bool or another of TVM's types");
        give_type(at, *type);
      });
    else
      each_entry(*attrs_.dtype, "list_int", [&](const JsonPosition& at) {
        GraphValue& draft = drafts_[at.index()];
        if (draft.shape && draft.shape->rank() == 0) draft.shape.reset();  // MXNet's shape that is not known
        if (const std::optional<ElementType> type = element_numbered(at.signed_number())) give_type(at, *type);
      });
    if (attrs_.storage_id)
      each_entry(*attrs_.storage_id, "list_int", [&](const JsonPosition& at) { base::append(storages_, at.signed_number()); });
    if (attrs_.device_index) read_devices();
  }

  static std::optional<Shape> shape_at(const JsonPosition& at) {
    std::vector<std::int64_t> dims;
    bool is_known = true;
    at.each_item([&](const JsonPosition& dim) {
      dims.push_back(dim.signed_number());
      is_known = is_known && dims.back() >= 0;
    });
    if (!is_known) return std::nullopt;
    return at.made_by([&] { return Shape(dims); });
  }

  void give_type(const JsonPosition& at, const ElementType& type) {
    GraphValue& draft = drafts_[at.index()];
    draft.dtype = type.dtype;
    if (!draft.shape) return;
    std::optional<std::size_t> bytes = type.bytes;
    for (const std::int64_t dim : *draft.shape)
      if (bytes) bytes = try_multiply(*bytes, static_cast<std::size_t>(dim));
    if (!bytes || *bytes > kMaxBytes)
      at.refuse_argument(ErrorCode::size_overflow,
                         text::join("an entry of ", draft.shape->to_string(), " of it has more bytes than 64 bits can count"),
                         "check its shape");
    draft.bytes = bytes;
  }

  // One for each entry, or, as MXNet writes them, for each node.
  void read_devices() {
    const JsonPosition list = list_of(*attrs_.device_index, "list_int");
    const std::size_t count = list.items();
    const std::size_t nodes = rows_.size() - 1;
    const bool is_by_node = count != entries() && count == nodes;
    if (count != entries() && !is_by_node)
      list.refuse(text::join("it has ", count, " items, and there are ", entries(), " entries of ", nodes, " nodes"),
                  "give one for each entry");
    std::unordered_map<std::int64_t, std::uint32_t> known;
    graph_.devices.clear();
    list.each_item([&](const JsonPosition& at) {
      base::checkpoint();
      const std::int64_t group = at.signed_number();
      const auto [found, is_new] = known.emplace(group, static_cast<std::uint32_t>(graph_.devices.size()));
      if (is_new) base::append(graph_.devices, device_named(group));
      const std::size_t first = is_by_node ? rows_[at.index()] : at.index();
      const std::size_t end = is_by_node ? rows_[at.index() + 1] : at.index() + 1;
      for (std::size_t entry = first; entry < end; ++entry) drafts_[entry].device = found->second;
    });
    if (graph_.devices.empty()) graph_.devices = Graph().devices;
  }

  // ---- Nodes.

  void read_nodes() {
    base::reserve(values_, entries());
    base::reserve(graph_.values, entries());
    base::reserve(runs_, rows_.size() - 1);
    file_.nodes->each_item([&](const JsonPosition& at) {
      base::checkpoint();
      NodeParts parts;
      read_members(at, kRuntimeNodeMembers, parts, UnknownMembers::ignored);
      if (parts.op == "null")
        add_external(at, parts);
      else if (parts.runs_nothing)
        add_alias(at, parts);
      else
        add_node(at, parts);
    });
  }

  std::uint32_t first_entry(const JsonPosition& node) const { return rows_[node.index()]; }
  std::uint32_t end_entry(const JsonPosition& node) const { return rows_[node.index() + 1]; }

  void add_external(const JsonPosition& at, const NodeParts& parts) {
    for (std::uint32_t entry = first_entry(at); entry < end_entry(at); ++entry)
      graph_.values[add_value(parts, entry - first_entry(at))].external = true;
    runs_.push_back(kNoNode);
  }

  void add_alias(const JsonPosition& at, const NodeParts& parts) {
    const std::vector<std::uint32_t> inputs = read_inputs(at, *parts.inputs);
    if (inputs.empty() || end_entry(at) - first_entry(at) != 1)
      at.refuse("it runs nothing, and has no input or not one output", "let its function be another");
    const GraphValue& input = graph_.values[values_[inputs.front()]];
    const GraphValue& output = drafts_[first_entry(at)];
    if (input.bytes != output.bytes || input.device != output.device)
      at.refuse("it runs nothing, and its output has other bytes than its input", "let its function be another");
    values_.push_back(values_[inputs.front()]);
    runs_.push_back(writer_of(inputs.front()));
  }

  void add_node(const JsonPosition& at, const NodeParts& parts) {
    GraphNode node{.name = parts.name, .op = parts.op};
    for (const std::uint32_t entry : read_inputs(at, *parts.inputs)) base::append(node.inputs, values_[entry]);
    if (parts.control_deps) parts.control_deps->each_item([&](const JsonPosition& dep) { wait_for(at, dep, node); });
    for (std::uint32_t entry = first_entry(at); entry < end_entry(at); ++entry)
      node.outputs.push_back(add_value(parts, entry - first_entry(at)));
    runs_.push_back(static_cast<NodeId>(graph_.nodes.size()));
    base::append(graph_.nodes, std::move(node));
  }

  // Adds the next entry as a value of its own. Names need not be unique in the file: only the first keeps it.
  ValueId add_value(const NodeParts& parts, std::uint32_t output) {
    GraphValue value = std::move(drafts_[values_.size()]);
    std::string name = output == 0 ? parts.name : text::join(parts.name, ':', output);
    base::take_text(2 * name.size() + base::kHashEntry);
    if (names_.insert(name).second) value.name = std::move(name);
    values_.push_back(static_cast<ValueId>(graph_.values.size()));
    graph_.values.push_back(std::move(value));
    return values_.back();
  }

  // The entries that a node reads, each written before it.
  std::vector<std::uint32_t> read_inputs(const JsonPosition& node, const JsonPosition& list) const {
    std::vector<std::uint32_t> inputs;
    list.each_item([&](const JsonPosition& at) {
      base::checkpoint();
      const std::uint32_t entry = read_entry(at);
      if (entry >= first_entry(node))
        at.refuse_argument(ErrorCode::graph_cycle, text::join("node ", node.index(), " reads what is not written before it"),
                           "give the nodes in the order in which they can run");
      base::append(inputs, entry);
    });
    return inputs;
  }

  // [node, output], or [node, output, version].
  std::uint32_t read_entry(const JsonPosition& list) const {
    std::uint32_t parts[3] = {};
    std::size_t count = 0;
    list.each_item([&](const JsonPosition& at) {
      if (count == std::size(parts)) at.refuse("it is one too many", "give the node, its output, and a version");
      parts[count++] = at.number_as<std::uint32_t>();
    });
    if (count < 2) list.refuse("it names no entry", "give the node and its output");
    const auto [node, output, version] = parts;
    if (node >= rows_.size() - 1)
      list.refuse_argument(ErrorCode::out_of_bounds, text::join("there is no node ", node), "nodes count from 0");
    if (output >= rows_[node + 1] - rows_[node])
      list.refuse_argument(ErrorCode::out_of_bounds, text::join("node ", node, " has no output ", output),
                           "its outputs are those of node_row_ptr");
    return rows_[node] + output;
  }

  // The node of the graph that wrote an entry.
  NodeId writer_of(std::uint32_t entry) const {
    const auto row = std::ranges::upper_bound(rows_, entry) - rows_.begin() - 1;
    return runs_[static_cast<std::size_t>(row)];
  }

  // A dependency without data is an empty value.
  void wait_for(const JsonPosition& node, const JsonPosition& dep, GraphNode& waits) {
    const std::uint64_t before = dep.number();
    if (before >= node.index())
      dep.refuse_argument(ErrorCode::graph_cycle, text::join("node ", node.index(), " waits for one that runs after it"),
                          "give the nodes in the order in which they can run");
    const NodeId runs = runs_[before];
    if (runs == kNoNode) return;
    const auto [found, is_new] = ends_.emplace(runs, static_cast<ValueId>(graph_.values.size()));
    if (is_new) {
      base::append(graph_.values, GraphValue{.bytes = 0});
      base::append(graph_.nodes[runs].outputs, found->second);
    }
    base::append(waits.inputs, found->second);
  }

  void read_arguments() const {
    file_.arg_nodes->each_item([&](const JsonPosition& at) {
      base::checkpoint();
      const std::uint64_t node = at.number();
      if (node >= rows_.size() - 1 || runs_[node] != kNoNode)
        at.refuse(text::join("node ", node, " is no input"), "name nodes whose op is null");
    });
  }

  void read_heads() {
    file_.heads->each_item([&](const JsonPosition& at) {
      base::checkpoint();
      graph_.values[values_[read_entry(at)]].output = true;
    });
  }

  FileParts file_;
  AttrParts attrs_;
  Graph graph_;
  std::vector<std::uint32_t> rows_;  // of each node, where its entries begin; and the end
  std::vector<GraphValue> drafts_;   // of each entry
  std::vector<std::int64_t> storages_;
  std::vector<ValueId> values_;               // of each entry so far
  std::vector<NodeId> runs_;                  // of each node so far: the node of the graph that it waits for or is
  std::unordered_map<NodeId, ValueId> ends_;  // of nodes that others wait for without data
  std::unordered_set<std::string> names_;
};

// ---- A plan in the file's own terms.

struct Storages {
  std::vector<std::int64_t> ids;      // of each entry
  std::vector<std::int64_t> offsets;  // the same; empty in a plan of slots
};

class StorageWriter {
 public:
  StorageWriter(const RuntimeReader& file, const Plan& plan) : file_(file), plan_(plan), ids_(plan.graph().values.size(), kNoStorage) {
    const std::vector<ValueId>& values = file.values();
    for (std::size_t entry = 0; entry < values.size(); ++entry) keep(entry, values[entry]);
    for (const ValueId value : values) number(value);
  }

  Storages run() const {
    Storages made;
    const bool has_offsets = plan_.tables().slots.empty();
    base::reserve(made.ids, file_.values().size());
    for (const ValueId value : file_.values()) {
      made.ids.push_back(ids_[value]);
      if (has_offsets) base::append(made.offsets, offset_of(value));
    }
    return made;
  }

 private:
  bool is_external(ValueId value) const { return plan_.graph().values[value].external; }

  void keep(std::size_t entry, ValueId value) {
    if (!is_external(value) || ids_[value] != kNoStorage || file_.storage(entry) < 0) return;
    ids_[value] = file_.storage(entry);
    taken_.insert(ids_[value]);
  }

  // Entries that begin at one offset share their bytes, so that they are in use one after the other.
  void number(ValueId value) {
    if (ids_[value] != kNoStorage) return;
    const ValueLocation& at = plan_.location(value);
    if (!at.planned() || at.extent_bytes == 0) {
      ids_[value] = next();
      return;
    }
    const auto [found, is_new] = shared_.emplace(std::pair(plan_.graph().values[value].device, at.offset), kNoStorage);
    if (is_new) found->second = next();
    ids_[value] = found->second;
  }

  std::int64_t next() {
    while (taken_.contains(next_)) ++next_;
    return next_++;
  }

  std::int64_t offset_of(ValueId value) const {
    const ValueLocation& at = plan_.location(value);
    if (!at.planned()) return -1;
    if (at.offset > INT32_MAX)
      base::refuse(ErrorCode::limit_exceeded, text::join("writing the offset ", at.offset), "graph runtimes read numbers of 32 bits",
                   "plan with the strategy slots", {{"offset", at.offset}, {"limit", INT32_MAX}});
    return static_cast<std::int64_t>(at.offset);
  }

  const RuntimeReader& file_;
  const Plan& plan_;
  std::vector<std::int64_t> ids_;           // of each value
  std::unordered_set<std::int64_t> taken_;  // by what the file keeps
  std::int64_t next_ = 0;
  std::map<std::pair<std::uint32_t, std::size_t>, std::int64_t> shared_;
};

void check_plan(const Plan& plan, const Graph& graph, std::string_view name) {
  const auto refuse = [&](const char* why, const char* help) {
    base::refuse(ErrorCode::plan_invalid, text::join("writing the storage of ", text::printable(name)), why, help);
  };
  if (!plan.has_locations()) refuse("the plan has no locations", "give it more capacity");
  if (plan.graph() != graph) refuse("the plan is of another graph", "plan what read_runtime_graph returns for this file");
  if (!plan.tables().order.empty() ||
      !std::ranges::all_of(plan.tables().edges, [](const PlanEdge& edge) { return edge.before < edge.after; }))
    refuse("the plan runs the nodes in another order than the file", "plan with the order given, and with no edges");
}

void write_list(JsonWriter& json, std::string_view name, const std::vector<std::int64_t>& numbers) {
  json.key(name).begin_array().value("list_int").begin_array();
  for (const std::int64_t number : numbers) json.value(number);
  json.end_array().end_array();
}

void write_attrs(const JsonPosition& attrs, const Storages& storages, JsonWriter& json) {
  json.begin_object();
  bool has_ids = false;
  attrs.each_member([&](const JsonPosition& attr) {
    if (attr.key() == kStorageOffsets) return;
    if (attr.key() != kStorageIds) {
      json.key(attr.key()).json(attr.json());
      return;
    }
    has_ids = true;
    write_list(json, kStorageIds, storages.ids);
  });
  if (!has_ids) write_list(json, kStorageIds, storages.ids);
  if (!storages.offsets.empty()) write_list(json, kStorageOffsets, storages.offsets);
  json.end_object();
}

}  // namespace

bool says_runtime_graph(const JsonPosition& top) {
  bool has_rows = false;
  bool is_ours = false;
  top.each_member([&](const JsonPosition& member) {
    has_rows = has_rows || member.key() == "arg_nodes";
    is_ours = is_ours || member.key() == "berth";
  });
  return has_rows && !is_ours;
}

Graph runtime_graph_from_json(const JsonPosition& top) { return std::move(RuntimeReader(top).graph()); }

}  // namespace berth::internal::plan::read

namespace berth {

using namespace internal;
using namespace internal::plan::read;

Graph read_runtime_graph(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] {
    const JsonDocument document(bytes, name);
    return runtime_graph_from_json(document.top());
  });
}

std::string with_storage_ids(std::string_view bytes, const Plan& plan, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] {
    const JsonDocument document(bytes, name);
    const JsonPosition top = document.top();
    RuntimeReader file(top);
    check_plan(plan, file.graph(), name);
    const Storages storages = StorageWriter(file, plan).run();
    constexpr std::size_t kMostDigits = 24;
    base::take(2 * bytes.size() + kMostDigits * (storages.ids.size() + storages.offsets.size()));
    JsonWriter json;
    json.begin_object();
    top.each_member([&](const JsonPosition& member) {
      json.key(member.key());
      if (member.key() == "attrs")
        write_attrs(member, storages, json);
      else
        json.json(member.json());
    });
    return json.end_object().take();
  });
}

}  // namespace berth

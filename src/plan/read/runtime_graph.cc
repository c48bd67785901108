// SPDX-License-Identifier: Apache-2.0
#include "plan/read/runtime_graph.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/limited.h"
#include "berth/plan/runtime_graph.h"
#include "plan/read/runtime_types.h"

namespace berth::internal::plan::read {

namespace {

constexpr NodeId kNoNode = UINT32_MAX;

// ---- What a file says, before it is a graph.

struct FileParts {
  std::optional<JsonPosition> nodes;
  std::optional<JsonPosition> arg_nodes;
  std::optional<JsonPosition> heads;
  std::optional<JsonPosition> rows;
  std::optional<JsonPosition> attrs;
};

// Keeps where a member is.
template <class Parts, std::optional<JsonPosition> Parts::*kPart>
void keep(const JsonPosition& at, Parts& parts) {
  parts.*kPart = at;
}

constexpr JsonMember<FileParts> kRuntimeMembers[] = {
    {"nodes", keep<FileParts, &FileParts::nodes>, true}, {"arg_nodes", keep<FileParts, &FileParts::arg_nodes>, true},
    {"heads", keep<FileParts, &FileParts::heads>, true}, {"node_row_ptr", keep<FileParts, &FileParts::rows>, true},
    {"attrs", keep<FileParts, &FileParts::attrs>, true},
};

struct AttrParts {
  std::optional<JsonPosition> shape;
  std::optional<JsonPosition> dltype;
  std::optional<JsonPosition> dtype;
  std::optional<JsonPosition> storage_id;
  std::optional<JsonPosition> device_index;
  std::optional<JsonPosition> storage_scope;
};

constexpr JsonMember<AttrParts> kRuntimeAttrMembers[] = {
    {"shape", keep<AttrParts, &AttrParts::shape>, true},
    {"dltype", keep<AttrParts, &AttrParts::dltype>},
    {"dtype", keep<AttrParts, &AttrParts::dtype>},
    {kStorageIds, keep<AttrParts, &AttrParts::storage_id>},
    {"device_index", keep<AttrParts, &AttrParts::device_index>},
    {"storage_scope", keep<AttrParts, &AttrParts::storage_scope>},
};

struct NodeParts {
  std::string op;
  std::string name;
  std::optional<JsonPosition> inputs;
  std::optional<JsonPosition> control_deps;
  bool runs_nothing = false;  // its function is "__nop"
  std::string outputs = {};   // how many it says that it has, in digits
};

void read_function(const JsonPosition& at, NodeParts& node) {
  at.each_member([&](const JsonPosition& member) {
    if (member.key() == "func_name") node.runs_nothing = member.text() == "__nop";
    if (member.key() == "num_outputs" && member.is_text()) node.outputs = member.text();
  });
}

constexpr JsonMember<NodeParts> kRuntimeNodeMembers[] = {
    {"op", [](const JsonPosition& at, NodeParts& node) { node.op = at.text(); }, true},
    {"name", [](const JsonPosition& at, NodeParts& node) { node.name = at.text(); }, true},
    {"inputs", keep<NodeParts, &NodeParts::inputs>, true},
    {"control_deps", keep<NodeParts, &NodeParts::control_deps>},
    {"attrs", read_function},
    {"attr", read_function},
};

// JsonPosition::items() is for reserving: it saturates.
std::size_t count_items(const JsonPosition& list) {
  std::size_t count = 0;
  list.each_item([&](const JsonPosition&) { ++count; });
  return count;
}

std::string device_named(std::int64_t device, std::string_view scope) {
  const std::string name = device == 1 ? "cpu:0" : device == 2 ? "cuda:0" : text::join("device ", device);
  return scope.empty() ? name : text::join(name, ' ', scope);
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

  RuntimeGraph run() && { return {std::move(graph_), std::move(values_), std::move(storages_)}; }

 private:
  // ---- Entries: the outputs of all nodes, one after the other.

  void read_rows() {
    const std::size_t nodes = count_items(*file_.nodes);
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
    each_entry(*attrs_.shape, "list_shape",
               [&](const JsonPosition& at) { base::append(drafts_, GraphValue{.shape = shape_at(at, attrs_.dltype ? 0 : 1)}); });
    if (attrs_.dltype)
      each_entry(*attrs_.dltype, "list_str", [&](const JsonPosition& at) {
        const std::optional<RuntimeType> type = type_named(at.text());
        if (!type)
          at.refuse(text::join(text::quoted(at.text()), " is no type of elements"), "write float32, int8, bool or another of TVM's types");
        give_type(at, *type);
      });
    else
      each_entry(*attrs_.dtype, "list_int", [&](const JsonPosition& at) {
        GraphValue& draft = drafts_[at.index()];
        if (draft.shape && draft.shape->rank() == 0) draft.shape.reset();  // MXNet's shape that is not known
        if (const std::optional<RuntimeType> type = type_numbered(at.signed_number())) give_type(at, *type);
      });
    if (attrs_.storage_id)
      each_entry(*attrs_.storage_id, "list_int", [&](const JsonPosition& at) { base::append(storages_, at.signed_number()); });
    read_devices();
  }

  // Nothing when an extent is less than `least`, as one that is not known is.
  static std::optional<Shape> shape_at(const JsonPosition& at, std::int64_t least) {
    std::vector<std::int64_t> dims;
    bool is_known = true;
    at.each_item([&](const JsonPosition& dim) {
      dims.push_back(dim.signed_number());
      is_known = is_known && dims.back() >= least;
    });
    if (!is_known) return std::nullopt;
    return at.made_by([&] { return Shape(dims); });
  }

  void give_type(const JsonPosition& at, const RuntimeType& type) {
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

  // Entries that may share storage are on one device: of one device_index, and of one storage_scope.
  void read_devices() {
    if (!attrs_.device_index && !attrs_.storage_scope) return;
    std::vector<std::pair<std::int64_t, std::string>> groups;
    base::reserve(groups, drafts_.size());
    groups.resize(drafts_.size(), {1, {}});
    if (attrs_.device_index) each_on_device([&](std::size_t entry, std::int64_t device) { groups[entry].first = device; });
    if (attrs_.storage_scope)
      each_entry(*attrs_.storage_scope, "list_str", [&](const JsonPosition& at) {
        if (at.text() != "global") groups[at.index()].second = at.text();
      });
    std::map<std::pair<std::int64_t, std::string>, std::uint32_t> known;
    graph_.devices.clear();
    for (std::size_t entry = 0; entry < drafts_.size(); ++entry) {
      base::checkpoint();
      const auto [found, is_new] = known.emplace(groups[entry], static_cast<std::uint32_t>(graph_.devices.size()));
      if (is_new) base::append(graph_.devices, device_named(found->first.first, found->first.second));
      drafts_[entry].device = found->second;
    }
    if (graph_.devices.empty()) graph_.devices = Graph().devices;
  }

  // There is one for each entry, or, as MXNet writes them, for each node.
  template <class Visit>
  void each_on_device(Visit visit) const {
    const JsonPosition list = list_of(*attrs_.device_index, "list_int");
    const std::size_t count = count_items(list);
    const std::size_t nodes = rows_.size() - 1;
    const bool is_by_node = count != entries() && count == nodes;
    if (count != entries() && !is_by_node)
      list.refuse(text::join("it has ", count, " items, and there are ", entries(), " entries of ", nodes, " nodes"),
                  "give one for each entry");
    list.each_item([&](const JsonPosition& at) {
      base::checkpoint();
      const std::int64_t device = at.signed_number();
      const std::size_t first = is_by_node ? rows_[at.index()] : at.index();
      const std::size_t end = is_by_node ? rows_[at.index() + 1] : at.index() + 1;
      for (std::size_t entry = first; entry < end; ++entry) visit(entry, device);
    });
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
    if (parts.control_deps && parts.control_deps->items() != 0)
      at.refuse("it runs nothing, and waits for others", "let its function be another");
    const GraphValue& input = graph_.values[values_[inputs.front()]];
    const GraphValue& output = drafts_[first_entry(at)];
    if (input.bytes != output.bytes || input.device != output.device)
      at.refuse("it runs nothing, and its output has other bytes than its input", "let its function be another");
    values_.push_back(values_[inputs.front()]);
    runs_.push_back(writer_of(inputs.front()));
  }

  void add_node(const JsonPosition& at, const NodeParts& parts) {
    const std::uint32_t outputs = end_entry(at) - first_entry(at);
    if (parts.op == "tvm_op" && !parts.outputs.empty() && parts.outputs != std::to_string(outputs))
      at.refuse(text::join("it says that it has ", text::printable(parts.outputs, 20), " outputs, and node_row_ptr gives it ", outputs),
                "let both agree");
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

RuntimeGraph runtime_graph_from_json(const JsonPosition& top) { return RuntimeReader(top).run(); }

}  // namespace berth::internal::plan::read

namespace berth {

using namespace internal;
using namespace internal::plan::read;

Graph read_runtime_graph(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] {
    const JsonDocument document(bytes, name);
    return runtime_graph_from_json(document.top()).graph;
  });
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "plan/read/graph_json.h"

#include <unordered_map>
#include <unordered_set>

#include "base/limited.h"
#include "berth/base/json.h"
#include "berth/plan/read_graph.h"

namespace berth::internal::plan::read {

namespace {

Shape shape_at(const JsonPosition& at) {
  std::vector<std::int64_t> dims;
  at.each_item([&](const JsonPosition& dim) { dims.push_back(dim.number_as<std::int64_t>()); });
  return at.made_by([&] { return Shape(dims); });
}

// ---- One table for each kind of object.

struct ValueDraft {
  const std::vector<std::string>* devices;
  GraphValue* value;
};

void read_device(const JsonPosition& at, ValueDraft& draft) {
  const auto found = std::ranges::find(*draft.devices, at.text());
  if (found == draft.devices->end()) at.refuse("the graph has no such device", "name one of \"devices\", which are cpu:0 when left out");
  draft.value->device = static_cast<std::uint32_t>(found - draft.devices->begin());
}

constexpr JsonMember<ValueDraft> kValueMembers[] = {
    {"name", [](const JsonPosition& at, ValueDraft& draft) { draft.value->name = at.text(); }},
    {"bytes", [](const JsonPosition& at, ValueDraft& draft) { draft.value->bytes = at.number(); }},
    {"dtype", [](const JsonPosition& at, ValueDraft& draft) { draft.value->dtype = at.made_by([&] { return parse_dtype(at.text()); }); }},
    {"shape", [](const JsonPosition& at, ValueDraft& draft) { draft.value->shape = shape_at(at); }},
    {"device", read_device},
    {"alignment", [](const JsonPosition& at, ValueDraft& draft) { draft.value->alignment = at.number(); }},
    {"external", [](const JsonPosition& at, ValueDraft& draft) { draft.value->external = at.flag(); }},
    {"dynamic", [](const JsonPosition& at, ValueDraft& draft) { draft.value->dynamic = at.flag(); }},
    {"output", [](const JsonPosition& at, ValueDraft& draft) { draft.value->output = at.flag(); }},
    {"fixed_offset", [](const JsonPosition& at, ValueDraft& draft) { draft.value->fixed_offset = at.number(); }},
    {"preferred_offset", [](const JsonPosition& at, ValueDraft& draft) { draft.value->preferred_offset = at.number(); }},
};

constexpr JsonMember<InplaceOption> kInplaceMembers[] = {
    {"output", [](const JsonPosition& at, InplaceOption& option) { option.output = at.number_as<std::uint32_t>(); }, true},
    {"input", [](const JsonPosition& at, InplaceOption& option) { option.input = at.number_as<std::uint32_t>(); }, true},
    {"identity", [](const JsonPosition& at, InplaceOption& option) { option.identity = at.flag(); }},
};

constexpr JsonMember<ViewOption> kViewMembers[] = {
    {"output", [](const JsonPosition& at, ViewOption& option) { option.output = at.number_as<std::uint32_t>(); }, true},
    {"input", [](const JsonPosition& at, ViewOption& option) { option.input = at.number_as<std::uint32_t>(); }, true},
    {"offset_bytes", [](const JsonPosition& at, ViewOption& option) { option.offset_bytes = at.number(); }},
    {"of_input", [](const JsonPosition& at, ViewOption& option) { option.of_input = at.flag(); }},
};

// Looks up values by name or by number.
class ValueFinder {
 public:
  // `values` is the JSON array that `found` was read from.
  ValueFinder(const JsonPosition& values, const std::vector<GraphValue>& found) : count_(found.size()) {
    ids_.reserve(found.size());
    values.each_item([&](const JsonPosition& at) {
      const std::string& name = found[at.index()].name;
      if (!name.empty() && !ids_.emplace(name, static_cast<ValueId>(at.index())).second)
        at.refuse_argument(ErrorCode::duplicate_value, text::join("another value is called ", text::quoted(name), " too"),
                           "give each value a name of its own");
    });
  }

  std::vector<ValueId> find_all(const JsonPosition& list) const {
    std::vector<ValueId> found;
    found.reserve(list.items());
    list.each_item([&](const JsonPosition& at) { found.push_back(find(at)); });
    return found;
  }

 private:
  ValueId find(const JsonPosition& at) const {
    if (at.is_null()) return kNoValue;
    return at.is_text() ? find_named(at, at.text()) : find_numbered(at, at.number());
  }

  ValueId find_named(const JsonPosition& at, std::string_view name) const {
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    at.refuse_argument(ErrorCode::undefined_value, text::join("there is no value ", text::quoted(name)),
                       "add it to \"values\", or write null for one that is left out");
  }

  ValueId find_numbered(const JsonPosition& at, std::uint64_t number) const {
    if (number < count_) return static_cast<ValueId>(number);
    at.refuse_argument(ErrorCode::out_of_bounds, text::join("there is no value ", number, ", as there are ", count_),
                       "values count from 0, in the order of \"values\"");
  }

  std::size_t count_;
  std::unordered_map<std::string_view, ValueId> ids_;
};

struct NodeDraft {
  const ValueFinder* values;
  GraphNode* node;
};

void read_ignored(const JsonPosition& at, NodeDraft& draft) {
  at.each_item([&](const JsonPosition& position) { draft.node->ignored_inputs.push_back(position.number_as<std::uint32_t>()); });
}

constexpr JsonMember<NodeDraft> kNodeMembers[] = {
    {"name", [](const JsonPosition& at, NodeDraft& draft) { draft.node->name = at.text(); }},
    {"op", [](const JsonPosition& at, NodeDraft& draft) { draft.node->op = at.text(); }},
    {"inputs", [](const JsonPosition& at, NodeDraft& draft) { draft.node->inputs = draft.values->find_all(at); }, true},
    {"outputs", [](const JsonPosition& at, NodeDraft& draft) { draft.node->outputs = draft.values->find_all(at); }, true},
    {"ignored_inputs", read_ignored},
    {"inplace", [](const JsonPosition& at, NodeDraft& draft) { draft.node->inplace = read_list(at, kInplaceMembers); }},
    {"views", [](const JsonPosition& at, NodeDraft& draft) { draft.node->views = read_list(at, kViewMembers); }},
    {"side_effects", [](const JsonPosition& at, NodeDraft& draft) { draft.node->side_effects = at.flag(); }},
    {"cost", [](const JsonPosition& at, NodeDraft& draft) { draft.node->cost = at.number(); }},
};

// Devices, values and nodes may come in any order in the file, and are parsed in this one.
struct GraphDraft {
  Graph graph;
  std::optional<JsonPosition> values;
  std::optional<JsonPosition> nodes;
};

void read_devices(const JsonPosition& at, GraphDraft& draft) {
  std::vector<std::string>& devices = draft.graph.devices;
  devices.clear();
  std::unordered_set<std::string_view> known;  // in time that grows with the list: it may be of any length
  at.each_item([&](const JsonPosition& device) {
    base::checkpoint();
    if (!base::emplace(known, device.text()).second) device.refuse("the device appears twice", "keep one of them");
    base::take_text(device.text().size());
    base::append(devices, std::string(device.text()));
  });
  base::give(known.size() * base::kHashEntry);
}

constexpr JsonMember<GraphDraft> kGraphMembers[] = {
    {"berth", [](const JsonPosition& at, GraphDraft&) { check_kind(at, "graph"); }, true},
    {"version", [](const JsonPosition& at, GraphDraft&) { check_version(at); }},
    {"name", [](const JsonPosition& at, GraphDraft& draft) { draft.graph.name = at.text(); }},
    {"devices", read_devices},
    {"values", [](const JsonPosition& at, GraphDraft& draft) { draft.values = at; }, true},
    {"nodes", [](const JsonPosition& at, GraphDraft& draft) { draft.nodes = at; }, true},
};

void read_values(const JsonPosition& list, Graph& graph) {
  base::reserve(graph.values, list.items());
  list.each_item([&](const JsonPosition& at) {
    base::checkpoint();
    ValueDraft draft{&graph.devices, &graph.values.emplace_back()};
    read_members(at, kValueMembers, draft);
  });
}

void read_nodes(const JsonPosition& list, const ValueFinder& values, Graph& graph) {
  base::reserve(graph.nodes, list.items());
  list.each_item([&](const JsonPosition& at) {
    base::checkpoint();
    NodeDraft draft{&values, &graph.nodes.emplace_back()};
    read_members(at, kNodeMembers, draft);
  });
}

// ---- Writing. What has its usual value is left out.

class GraphWriter {
 public:
  GraphWriter(const Graph& graph, JsonWriter& json) : graph_(graph), json_(json) {}

  void write() {
    json_.begin_object().member("berth", "graph").member("version", kFormVersion);
    text("name", graph_.name);
    list("devices", graph_.devices, [&](const std::string& device) { json_.value(device); });
    list("values", graph_.values, [&](const GraphValue& value) { write_value(value); });
    list("nodes", graph_.nodes, [&](const GraphNode& node) { write_node(node); });
    json_.end_object();
  }

 private:
  void write_value(const GraphValue& value) {
    json_.begin_object();
    text("name", value.name);
    number("bytes", value.bytes);
    if (value.dtype) json_.member("dtype", to_string(*value.dtype));
    if (value.shape) list("shape", *value.shape, [&](std::int64_t dim) { json_.value(dim); });
    if (value.device != 0) json_.member("device", graph_.devices[value.device]);
    if (value.alignment != 0) json_.member("alignment", value.alignment);
    flag("external", value.external);
    flag("dynamic", value.dynamic);
    flag("output", value.output);
    number("fixed_offset", value.fixed_offset);
    number("preferred_offset", value.preferred_offset);
    json_.end_object();
  }

  void write_node(const GraphNode& node) {
    json_.begin_object();
    text("name", node.name);
    text("op", node.op);
    list("inputs", node.inputs, [&](ValueId value) { write_mention(value); });
    list("outputs", node.outputs, [&](ValueId value) { write_mention(value); });
    if (!node.ignored_inputs.empty()) list("ignored_inputs", node.ignored_inputs, [&](std::uint32_t at) { json_.value(at); });
    if (!node.inplace.empty()) list("inplace", node.inplace, [&](const InplaceOption& option) { write_inplace(option); });
    if (!node.views.empty()) list("views", node.views, [&](const ViewOption& option) { write_view(option); });
    flag("side_effects", node.side_effects);
    if (node.cost != GraphNode().cost) json_.member("cost", node.cost);
    json_.end_object();
  }

  void write_mention(ValueId value) {
    if (value == kNoValue)
      json_.null();
    else if (graph_.values[value].name.empty())
      json_.value(value);
    else
      json_.value(graph_.values[value].name);
  }

  void write_inplace(const InplaceOption& option) {
    json_.begin_object().member("output", option.output).member("input", option.input);
    flag("identity", option.identity);
    json_.end_object();
  }

  void write_view(const ViewOption& option) {
    json_.begin_object().member("output", option.output).member("input", option.input).member("offset_bytes", option.offset_bytes);
    json_.member("of_input", option.of_input).end_object();
  }

  template <class List, class Write>
  void list(std::string_view name, const List& items, Write write_item) {
    json_.key(name).begin_array();
    for (const auto& item : items) write_item(item);
    json_.end_array();
  }

  void text(std::string_view name, const std::string& value) {
    if (!value.empty()) json_.member(name, value);
  }

  void number(std::string_view name, const std::optional<std::size_t>& value) {
    if (value) json_.member(name, *value);
  }

  void flag(std::string_view name, bool value) {
    if (value) json_.member(name, value);
  }

  const Graph& graph_;
  JsonWriter& json_;
};

}  // namespace

void check_kind(const JsonPosition& at, std::string_view expected) {
  if (at.text() != expected)
    at.refuse(text::join("it is ", text::quoted(at.text()), ", and a ", expected, " is expected"),
              text::join("give a file of a ", expected));
}

void check_version(const JsonPosition& at) {
  if (at.number() != kFormVersion)
    at.refuse(text::join("it is of version ", at.number(), ", and this library reads ", kFormVersion),
              "use the version of berth that wrote it");
}

Graph graph_from_json(const JsonPosition& object) {
  GraphDraft draft;
  read_members(object, kGraphMembers, draft);
  read_values(*draft.values, draft.graph);
  read_nodes(*draft.nodes, ValueFinder(*draft.values, draft.graph.values), draft.graph);
  draft.graph.validate();
  return std::move(draft.graph);
}

void graph_to_json(const Graph& graph, JsonWriter& json) { GraphWriter(graph, json).write(); }

}  // namespace berth::internal::plan::read

namespace berth {

using namespace internal;
using namespace internal::plan::read;

Graph read_graph_json(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] {
    const JsonDocument document(bytes, name);
    return graph_from_json(document.top());
  });
}

void Graph::write_json(JsonWriter& json) const {
  validate();  // what is written can be read again
  graph_to_json(*this, json);
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <unordered_set>

#include "base/limited.h"
#include "base/refuse.h"
#include "berth/base/json.h"
#include "berth/plan/runtime_graph.h"
#include "plan/read/runtime_graph.h"

// A plan in a runtime's own terms.
namespace berth::internal::plan::read {

namespace {

constexpr std::string_view kStorageOffsets = "storage_offset";

struct Storages {
  std::vector<std::int64_t> ids;      // of each entry
  std::vector<std::int64_t> offsets;  // the same; empty in a plan of slots
};

class StorageWriter {
 public:
  StorageWriter(const RuntimeGraph& file, const Plan& plan) : file_(file), plan_(plan), ids_(plan.graph().values.size(), kNoStorage) {
    const std::vector<ValueId>& values = file.values;
    for (std::size_t entry = 0; entry < values.size(); ++entry) keep(entry, values[entry]);
    for (const ValueId value : values) number(value);
  }

  Storages run() const {
    Storages made;
    const bool has_offsets = plan_.tables().slots.empty();
    base::reserve(made.ids, file_.values.size());
    for (const ValueId value : file_.values) {
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

  const RuntimeGraph& file_;
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

}  // namespace berth::internal::plan::read

namespace berth {

using namespace internal;
using namespace internal::plan::read;

std::string with_storage_ids(std::string_view bytes, const Plan& plan, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] {
    const JsonDocument document(bytes, name);
    const JsonPosition top = document.top();
    const RuntimeGraph file = runtime_graph_from_json(top);
    check_plan(plan, file.graph, name);
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

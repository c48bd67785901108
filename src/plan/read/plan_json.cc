// SPDX-License-Identifier: Apache-2.0
#include "plan/read/plan_json.h"

#include "base/limited.h"
#include "berth/base/json.h"
#include "berth/plan/read_graph.h"
#include "plan/read/graph_json.h"
#include "plan/read/plan_tables_json.h"

namespace berth::internal::plan::read {

namespace {

constexpr JsonMember<PlanFileParts> kFileMembers[] = {
    {"berth", [](const JsonPosition& at, PlanFileParts&) { check_kind(at, "plan"); }, true},
    {"version", [](const JsonPosition& at, PlanFileParts&) { check_version(at); }, true},
    {"graph", [](const JsonPosition& at, PlanFileParts& file) { file.graph = at; }, true},
    {"plan", [](const JsonPosition& at, PlanFileParts& file) { file.plan = at; }, true},
};

}  // namespace

PlanFileParts plan_file(const JsonPosition& top) {
  PlanFileParts file;
  read_members(top, kFileMembers, file);
  return file;
}

}  // namespace berth::internal::plan::read

namespace berth {

using namespace internal;
using namespace internal::plan::read;

Plan read_plan_json(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] {
    const JsonDocument document(bytes, name, "give a plan that berth plan --out or PlanFile wrote");
    const JsonPosition top = document.top();
    const PlanFileParts file = plan_file(top);
    auto graph = std::make_shared<const Graph>(graph_from_json(*file.graph));
    return Plan(std::move(graph), tables_from_json(*file.plan));
  });
}

void PlanFile::write_json(JsonWriter& json) const {
  json.begin_object().member("berth", "plan").member("version", kFormVersion).key("graph");
  graph_to_json(plan.graph(), json);
  json.key("plan");
  tables_to_json(plan.tables(), json);
  json.end_object();
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/read_graph.h"

#include "base/limited.h"
#include "plan/read/graph_json.h"
#include "plan/read/lines.h"
#include "plan/read/plan_json.h"
#include "plan/read/runtime_graph.h"

namespace berth {

using namespace internal;
using namespace internal::plan;

namespace {

using namespace internal::plan::read;

bool says_plan(const JsonPosition& top) {
  bool plan = false;
  top.each_member(
      [&](const JsonPosition& member) { plan = plan || (member.key() == "berth" && member.is_text() && member.text() == "plan"); });
  return plan;
}

Graph read_json(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] {
    const JsonDocument document(bytes, name);
    const JsonPosition top = document.top();
    if (says_runtime_graph(top)) return runtime_graph_from_json(top).graph;
    return graph_from_json(says_plan(top) ? *plan_file(top).graph : top);
  });
}

// The first line that is not empty, without blanks around it.
std::string_view first_line(std::string_view bytes) {
  for (std::string_view rest = without_mark(bytes); !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trimmed(line);
    if (!line.empty()) return line;
  }
  return {};
}

}  // namespace

Graph read_graph(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  const std::string_view line = first_line(bytes);
  if (line.starts_with('{')) return read_json(bytes, name, limits);
  if (line.starts_with('#') || line.find('|') != std::string_view::npos) return read_graph_text(bytes, name, limits);
  if (line.find(',') != std::string_view::npos) return read_lives_csv(bytes, name, {}, limits);
  throw FormatError(
      ErrorCode::format_error,
      {text::join("reading ", text::printable(name), " as a graph"),
       line.empty() ? "it is empty" : "it begins like none of the graph formats",
       "give JSON, lines of id,lower,upper,size, or lines of index operator | producers | bytes; a model of ONNX is called NAME.onnx"},
      {{"offset", 0}});
}

}  // namespace berth

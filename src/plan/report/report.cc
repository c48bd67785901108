// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/report.h"

#include "base/text.h"
#include "berth/base/error.h"
#include "html/html.h"
#include "html/map_svg.h"
#include "plan/report/panels.h"
#include "plan/report/picture.h"
#include "plan/report/tables.h"

namespace berth {

using namespace internal;

namespace {

using namespace internal::plan;

void check_device(const Plan& plan, std::uint32_t device) {
  const std::size_t devices = plan.graph().devices.size();
  if (device >= devices)
    throw ArgumentError(ErrorCode::out_of_bounds,
                        {text::join("a picture of device ", device), text::join("the graph has ", devices, " devices, counted from 0"),
                         "give the index of one of Graph::devices"},
                        {{"device", device}, {"devices", devices}});
}

std::vector<html::AddressMap> maps_of(const Plan& plan) { return plan.has_locations() ? plan_maps(plan) : std::vector<html::AddressMap>{}; }

std::string subtitle(const Plan& plan) {
  const NodeRange nodes = plan.tables().nodes;
  const std::string& name = plan.graph().name;
  return text::join(name, name.empty() ? "" : ", ", nodes.end - nodes.begin, " nodes, ", plan.graph().values.size(), " values");
}

std::string why_empty(const Plan& plan) {
  return plan.has_locations() ? "No value has bytes in an arena."
                              : text::join("There is no plan to draw: its outcome is ", to_string(plan.outcome()), ".");
}

}  // namespace

std::string plan_picture(const Plan& plan, std::uint32_t device, std::size_t columns, std::size_t rows) {
  check_device(plan, device);
  if (!plan.has_locations() || plan.tables().arenas[device].bytes == 0) return {};
  return draw_picture(plan_outline(plan, device), columns, rows);
}

std::string plan_svg(const Plan& plan) { return html::maps_svg(maps_of(plan), "memory plan"); }

std::string plan_html(const Plan& plan, const std::string& title) {
  html::HtmlReport report(title, subtitle(plan));
  report.figures(plan_figures(plan));
  const std::vector<html::AddressMap> maps = maps_of(plan);
  if (maps.empty()) report.paragraph(why_empty(plan));
  for (const html::AddressMap& map : maps) report.timeline(html::live_timeline(map, text::join("Live bytes on ", map.title))).map(map);
  if (!plan.trades().empty()) report.table(trades_table(plan));
  if (!plan.attempts().empty()) report.table(attempts_table(plan));
  for (std::uint32_t device = 0; !maps.empty() && device < plan.tables().arenas.size(); ++device)
    if (plan.tables().arenas[device].bytes != 0) report.table(peak_table(plan, device));
  if (!plan.unplanned().empty()) report.table(unplanned_table(plan));
  return report.take();
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "plan/report/tables.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "base/text.h"
#include "html/number.h"
#include "plan/report/panels.h"

namespace berth::internal::plan {

namespace {

html::TableCell number_cell(double value, int decimals, std::string_view unit = {}) {
  const std::string shown = html::decimal(value, decimals);
  return {text::join(shown, unit), shown};
}

double percent(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::vector<html::TableCell> attempt_row(const PlanAttempt& attempt, std::size_t lower_bound_bytes) {
  const std::optional<std::size_t>& peak = attempt.peak_bytes;
  const bool bounded = peak && lower_bound_bytes != 0;
  return {{attempt.strategy},
          peak ? html::bytes_cell(*peak) : html::TableCell{},
          bounded ? number_cell(percent(*peak, lower_bound_bytes) - 100, 2, " %") : html::TableCell{},
          number_cell(attempt.time_ms, 2, " ms"),
          {attempt.note}};
}

// The buffers that are live at a step, largest first; at the peak step they add up to the peak.
std::vector<Plan::Buffer> live_at(const Plan& plan, std::uint32_t device, NodeId step) {
  std::vector<Plan::Buffer> live = plan.buffers();
  std::erase_if(live, [&](const Plan::Buffer& b) { return b.device != device || step < b.life.begin || step >= b.life.end; });
  std::ranges::stable_sort(live, std::greater(), &Plan::Buffer::bytes);
  return live;
}

std::vector<html::TableCell> peak_row(const Plan& plan, const Plan::Buffer& buffer, std::size_t peak_bytes) {
  return {{value_name(plan.graph(), buffer.first)},
          html::bytes_cell(buffer.bytes),
          number_cell(percent(buffer.bytes, peak_bytes), 1, " %"),
          {std::to_string(buffer.offset)},
          {std::to_string(buffer.life.begin)},
          {std::to_string(buffer.life.end - 1)},
          {step_name(plan.graph(), plan.node_at(buffer.life.begin))}};
}

// The lower bound, with its proof where there is only one device.
std::string bound_note(const Plan& plan) {
  std::string note = text::join(plan.lower_bound_bytes(), " bytes");
  if (plan.graph().devices.size() == 1) note += text::join(", ", plan.describe_bound());
  return note;
}

}  // namespace

std::vector<html::Figure> plan_figures(const Plan& plan) {
  const std::string none = "none";
  const bool placed = plan.has_locations();
  return {{"peak", placed ? text::bytes(plan.peak_bytes()) : none, placed ? text::join(plan.peak_bytes(), " bytes") : ""},
          {"lower bound", text::bytes(plan.lower_bound_bytes()), bound_note(plan)},
          {"peak / lower bound", placed ? html::decimal(plan.ratio(), 4) : none},
          {"without reuse", text::bytes(plan.naive_bytes()), text::join(plan.naive_bytes(), " bytes")},
          {"buffers", std::to_string(plan.buffers().size()), text::join("of ", plan.graph().values.size(), " values")},
          {"strategy", plan.strategy().empty() ? none : plan.strategy()},
          {"outcome", std::string(to_string(plan.outcome()))},
          {"planned in", text::join(html::decimal(plan.time_ms(), 1), " ms")}};
}

html::Table attempts_table(const Plan& plan) {
  html::Table table{"Strategies", {{"strategy"}, {"peak", true}, {"over the bound", true}, {"time", true}, {"note"}}};
  for (const PlanAttempt& attempt : plan.attempts()) table.rows.push_back(attempt_row(attempt, plan.lower_bound_bytes()));
  return table;
}

html::Table peak_table(const Plan& plan, std::uint32_t device) {
  const Plan::Peak peak = plan.at_peak(device);
  html::Table table{text::join("At the peak of ", plan.graph().devices[device]),
                    {{"buffer"}, {"bytes", true}, {"share", true}, {"offset", true}, {"from step", true}, {"to step", true}, {"made by"}}};
  const std::vector<Plan::Buffer> live = live_at(plan, device, peak.step);
  const std::size_t shown = std::min(live.size(), kMostRows);
  for (std::size_t i = 0; i < shown; ++i) table.rows.push_back(peak_row(plan, live[i], peak.bytes));
  table.note = text::join(text::bytes(peak.bytes), " are live at step ", peak.step, ".");
  if (shown < live.size()) table.note += text::join(" The largest ", shown, " of ", live.size(), " buffers are shown.");
  return table;
}

html::Table trades_table(const Plan& plan) {
  html::Table table{"What edges buy", {{"edges", true}, {"peak", true}, {"bytes"}, {"longest path", true}, {"path"}}};
  const std::size_t most = plan.trades().front().peak_bytes;  // fewer from one to the next
  std::uint64_t longest = 1;
  for (const EdgeTrade& one : plan.trades()) longest = std::max(longest, one.longest_path);
  for (const EdgeTrade& one : plan.trades()) {
    if (table.rows.size() == kMostRows) break;
    html::TableCell bytes = html::bytes_cell(one.peak_bytes);
    html::TableCell path = html::count_cell(one.longest_path);
    bytes.bar = {{percent(one.peak_bytes, most) / 100, "tone-0", bytes.text}};
    path.bar = {{static_cast<double>(one.longest_path) / static_cast<double>(longest), "tone-3", path.text}};
    table.rows.push_back({html::count_cell(one.edges), html::bytes_cell(one.peak_bytes), std::move(bytes),
                          html::count_cell(one.longest_path), std::move(path)});
  }
  table.note = "With so many edges between nodes the graph needs so much memory, and takes at least so long; the last row is this plan.";
  return table;
}

html::Table unplanned_table(const Plan& plan) {
  html::Table table{"Values without a location", {{"reason"}, {"values", true}}};
  for (const auto& [reason, count] : plan.unplanned_by_reason())
    table.rows.push_back({{std::string(to_string(reason))}, {std::to_string(count)}});
  return table;
}

}  // namespace berth::internal::plan

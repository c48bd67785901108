// SPDX-License-Identifier: Apache-2.0
#include "cli/budget.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/plan.h"
#include "cli/byte_count.h"
#include "cli/input.h"
#include "cli/table.h"

namespace berth::internal::cli {

namespace {

constexpr std::size_t kMostItems = 12;  // of each proposal, in the human-readable table

std::string seconds(double time_s) {
  return time_s >= 1      ? fmt::format("{:.2f} s", time_s)
         : time_s >= 1e-3 ? fmt::format("{:.1f} ms", time_s * 1e3)
                          : fmt::format("{:.1f} µs", time_s * 1e6);
}

std::string node_text(const Graph& graph, NodeId node) { return node < graph.nodes.size() ? graph.describe_node(node) : "the end"; }

// The cost of an item: the nodes that run again, or time.
std::string effort(const Graph& graph, const BudgetItem& item) {
  if (item.kind == BudgetItem::Kind::move) return seconds(item.time_s);
  std::string out;
  for (const NodeId node : item.again) out += (out.empty() ? "" : ", ") + graph.describe_node(node);
  return out;
}

std::string items_text(const Graph& graph, const BudgetProposal& proposal) {
  using enum Table::Align;
  Table table({{"", left}, {"value"}, {"bytes", right}, {"idle after"}, {"until"}, {"takes"}});
  for (std::size_t i = 0; i < proposal.items.size() && i < kMostItems; ++i) {
    const BudgetItem& item = proposal.items[i];
    table.add({std::string(to_string(item.kind)), graph.describe_value(item.value), text::bytes(item.bytes), node_text(graph, item.after),
               node_text(graph, item.before), effort(graph, item)});
  }
  std::string out = table.to_string();
  if (proposal.items.size() > kMostItems)
    out += paint(Mood::quiet, fmt::format("  and {} more (--json has all)", proposal.items.size() - kMostItems)) + "\n";
  return out;
}

std::string summary(const BudgetProposal& proposal, std::size_t device) {
  std::string out;
  if (proposal.nodes_again != 0) out += ", " + count_of(proposal.nodes_again, "node") + " recomputed";
  if (proposal.bytes_moved != 0) out += fmt::format(", {} moved in {}", text::bytes(proposal.bytes_moved), seconds(proposal.time_s));
  return fmt::format("{} ({}): {}{}\n", paint(Mood::good, "✔ " + proposal.name), count_of(proposal.items.size(), "item"),
                     text::bytes(proposal.plan.tables().arenas[device].bytes), out);
}

std::string answer_text(const PlanCommand& command, const BudgetOptions& options, const BudgetAnswer& answer) {
  const std::string budget = text::bytes(options.budget_bytes);
  std::string out =
      fmt::format("{}: {} nodes, {} buffers\n  lower bound    {}\n  budget         {}\n\n", text::printable(command.path),
                  answer.plan.graph().nodes.size(), answer.plan.buffers().size(), text::bytes(answer.plan.lower_bound_bytes()), budget);
  if (!answer.plan.has_locations()) return out + paint(Mood::bad, "✘ there is no plan: fixed offsets overlap") + "\n";
  const std::string peak = text::bytes(answer.plan.tables().arenas[options.device].bytes);
  if (answer.fits) return out + paint(Mood::good, fmt::format("✔ it fits: {} of {}", peak, budget)) + "\n";
  out += paint(Mood::bad, fmt::format("✘ it does not fit: {} is {} more than {}", peak, text::bytes(answer.over_bytes), budget)) + "\n";
  if (answer.least_bytes > options.budget_bytes)
    return out + fmt::format("  one node alone, or the outputs at the end, need {}: recomputing or moving values does not help\n",
                             text::bytes(answer.least_bytes));
  if (answer.proposals.empty()) return out + "  found no values to recompute or move that would make it fit\n";
  for (const BudgetProposal& proposal : answer.proposals)
    out += "\n" + summary(proposal, options.device) + items_text(answer.plan.graph(), proposal);
  return out;
}

void write_item(JsonWriter& json, const Graph& graph, const BudgetItem& item) {
  json.begin_object().member("kind", to_string(item.kind)).member("value", item.value).member("name", graph.values[item.value].name);
  json.member("bytes", item.bytes).member("after", item.after).member("before", item.before).key("again").begin_array();
  for (const NodeId node : item.again) json.value(node);
  json.end_array().member("time_s", item.time_s).end_object();
}

std::string answer_json(const PlanCommand& command, const BudgetOptions& options, const BudgetAnswer& answer) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().member("file", command.path).member("budget_bytes", options.budget_bytes).member("fits", answer.fits);
  json.member("over_bytes", answer.over_bytes).member("least_bytes", answer.least_bytes).key("plan").begin_object();
  answer.plan.write_json(json, detail_of(command));
  json.end_object().key("proposals").begin_array();
  for (const BudgetProposal& proposal : answer.proposals) {
    json.begin_object().member("name", proposal.name).member("nodes_again", proposal.nodes_again);
    json.member("bytes_moved", proposal.bytes_moved).member("time_s", proposal.time_s).key("items").begin_array();
    for (const BudgetItem& item : proposal.items) write_item(json, answer.plan.graph(), item);
    json.end_array().key("plan").begin_object();
    proposal.plan.write_json(json, detail_of(command));
    json.end_object().end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

// The plan that fits: the plain one, or that of the first proposal.
const Plan* fitting_plan(const BudgetAnswer& answer) {
  if (answer.fits) return &answer.plan;
  return answer.proposals.empty() ? nullptr : &answer.proposals.front().plan;
}

}  // namespace

Exit run_budget(const PlanCommand& command, Graph graph, PlanOptions options) {
  BudgetOptions asked;
  asked.budget_bytes = parse_byte_count(command.budget, "--budget");
  asked.bandwidth = static_cast<double>(parse_byte_count(command.bandwidth, "--bandwidth"));
  asked.move_to = command.move_to;
  asked.plan = std::move(options);
  const BudgetAnswer answer = plan_budget(std::move(graph), asked);
  if (const Plan* fitting = fitting_plan(answer)) {
    if (!command.svg.empty()) write_output(command.svg, plan_svg(*fitting));
    if (!command.html.empty()) write_output(command.html, plan_html(*fitting, command.path));
    if (!command.out.empty()) write_output(command.out, to_json(PlanFile{*fitting}));
  }
  print(command.json ? answer_json(command, asked, answer) : answer_text(command, asked, answer));
  return answer.fits ? Exit::ok : Exit::no;
}

}  // namespace berth::internal::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/refuse.h"
#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/plan.h"
#include "cli/bindings.h"
#include "cli/budget.h"
#include "cli/byte_count.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/plan_file.h"
#include "cli/plan_time.h"
#include "cli/table.h"
#include "os/file/read_file.h"
#include "os/memory/heap.h"

// `berth plan`.
namespace berth::internal::cli {

namespace {

// The graph that was read, and the text above the table.
struct PlanSource {
  Graph graph;
  std::string bytes = {};  // of the file, where they are written again
  std::string about = {};
  std::vector<std::string> unknown = {};  // of a model: values of unknown shape
};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

// The size of a file beside a model; nullopt when it does not exist.
std::optional<std::uint64_t> external_size(const std::string& folder, const std::string& path) {
  const Result<std::uint64_t> size = os::size_beneath(folder.c_str(), path.c_str());
  if (size.ok()) return *size;
  if (size.failure().code == ErrorCode::path_escape)
    throw FormatError(ErrorCode::path_escape,
                      {text::join("external data in ", text::quoted(path)), size.failure().why, "keep the data beside the model"},
                      {{"path", text::printable(path)}});
  return std::nullopt;
}

bool is_onnx(const std::string& path, std::string_view bytes) {
  return path.ends_with(".onnx") || bytes.starts_with('\x08');  // the field tag of ir_version
}

PlanSource read_model(const PlanCommand& command, std::string_view bytes, const ReadLimits& limits) {
  OnnxOptions options{.bind = parse_bindings(command.bind), .allow_unknown = command.allow_unknown, .limits = limits};
  options.external_size = [folder = folder_of(command.path)](const std::string& path) { return external_size(folder, path); };
  OnnxModel model = read_onnx(bytes, options, command.path);
  PlanSource source{std::move(model.graph)};
  source.unknown = std::move(model.unknown);
  source.about = fmt::format("opset {}, {} weights of {}", model.opset, model.weights, text::bytes(model.weight_bytes));
  if (model.subgraph_values != 0) source.about += fmt::format(", {} values in subgraphs not planned", model.subgraph_values);
  return source;
}

// An error in the file is an answer (exit 1); an error in the arguments is a usage error (exit 2).
template <class Make, class IsOfTheFile>
auto answer(Make make, IsOfTheFile is_of_the_file) {
  try {
    return make();
  } catch (const ArgumentError& error) {
    if (!is_of_the_file(error.code())) throw;
    throw FormatError(error.code(), {error.asked(), error.why(), error.help()}, error.facts());
  }
}

PlanSource read_bytes(const PlanCommand& command, std::string_view bytes, const ReadLimits& limits) {
  if (command.storage_ids.empty() && is_onnx(command.path, bytes)) return read_model(command, bytes, limits);
  if (!command.bind.empty()) base::refuse("--bind", "only ONNX models have symbolic dimensions", "leave it out");
  if (!command.storage_ids.empty()) return {read_runtime_graph(bytes, command.path, limits)};
  return {read_graph(bytes, command.path, limits)};
}

PlanSource read_source(const PlanCommand& command, const PlanTime& time) {
  Input input = read_input(command.path, parse_room(command.max_memory));
  const ReadLimits limits{.memory_bytes = input.room_bytes, .time = time.for_reading()};
  PlanSource source =
      answer([&] { return read_bytes(command, input.bytes, limits); },
             [](ErrorCode code) {
               return code != ErrorCode::invalid_argument && code != ErrorCode::binding_conflict && code != ErrorCode::unknown_shape;
             });
  if (!command.storage_ids.empty()) source.bytes = std::move(input.bytes);
  return source;
}

// One end of --nodes; nothing when it is left out.
std::optional<NodeId> parse_node(const std::string& nodes, std::string_view end) {
  if (end.empty()) return std::nullopt;
  NodeId node = 0;
  const auto [rest, error] = std::from_chars(end.data(), end.data() + end.size(), node);
  if (error != std::errc() || rest != end.data() + end.size())
    base::refuse(text::join("--nodes ", text::quoted(nodes)), "its ends are numbers of nodes", "write 0:12, or 12: for the rest");
  return node;
}

NodeRange parse_nodes(const std::string& nodes, const Graph& graph, const Plan* after) {
  const std::size_t colon = nodes.find(':');
  if (colon == std::string::npos)
    base::refuse(text::join("--nodes ", text::quoted(nodes)), "it has no colon", "write 0:12, or 12: for the rest");
  const std::string_view text = nodes;
  return {parse_node(nodes, text.substr(0, colon)).value_or(after == nullptr ? 0 : after->tables().nodes.end),
          parse_node(nodes, text.substr(colon + 1)).value_or(static_cast<NodeId>(graph.nodes.size()))};
}

PlanOptions make_options(const PlanCommand& command) {
  PlanOptions options;
  options.strategy = command.strategy;
  options.order = command.order;
  options.match_range = command.match_range;
  options.inplace = !command.no_inplace;
  options.parallel = command.parallel;
  options.most_edges = command.most_edges;
  options.all_strategies = command.all;
  options.seed = command.seed;
  options.threads = command.threads;
  if (!command.capacity.empty()) options.capacity_bytes = parse_byte_count(command.capacity, "--capacity");
  if (!command.align.empty()) options.alignment = parse_byte_count(command.align, "--align");
  if (!command.max_chunk.empty()) options.max_chunk_bytes = parse_byte_count(command.max_chunk, "--max-chunk");
  for (const std::string& one : command.arenas) {
    const std::size_t equals = one.rfind('=');
    ArenaOption arena{one.substr(0, equals)};
    if (arena.name.empty()) base::refuse(text::join("--arena ", text::quoted(one)), "it has no name", "write sram=512KiB, or dram");
    if (equals != std::string::npos) arena.capacity_bytes = parse_byte_count(one.substr(equals + 1), "--arena");
    options.arenas.push_back(std::move(arena));
  }
  return options;
}

// The orders that were tried.
std::string orders_text(const Plan& plan) {
  if (plan.orders().empty()) return {};
  using enum Table::Align;
  Table table({{"order"}, {"most live", right}, {"peak", right}, {""}});
  const bool changed = !plan.tables().order.empty();
  bool named = false;
  for (const OrderAttempt& one : plan.orders()) {
    const bool won = !named && plan.has_locations() && one.peak_bytes == plan.peak_bytes() && (one.order != "given") == changed;
    named |= won;
    table.add({won ? paint(Mood::good, one.order) : one.order, text::bytes(one.lower_bound_bytes),
               one.peak_bytes ? text::bytes(*one.peak_bytes) : "–",
               won              ? paint(Mood::good, "best")
               : one.peak_bytes ? ""
                                : paint(Mood::quiet, "not packed: it could not win")});
  }
  return table.to_string() + "\n";
}

std::string chunks_text(const Plan& plan) {
  if (plan.tables().chunks.empty()) return {};
  using enum Table::Align;
  Table table({{"chunk"}, {"device"}, {"used", right}, {"of", right}, {"buffers", right}});
  const std::vector<PlanChunk>& chunks = plan.tables().chunks;
  std::vector<std::size_t> counts(chunks.size(), 0);
  for (const Plan::Buffer& buffer : plan.buffers()) {
    // Chunks are sorted, and each buffer is in one.
    const auto after = std::ranges::upper_bound(chunks, std::pair(buffer.device, buffer.offset), {},
                                                [](const PlanChunk& chunk) { return std::pair(chunk.device, chunk.offset); });
    ++counts[static_cast<std::size_t>(after - chunks.begin()) - 1];
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const PlanChunk& chunk = chunks[i];
    table.add({chunk.name.empty() ? fmt::format("{}", i) : text::printable(chunk.name), text::printable(plan.graph().devices[chunk.device]),
               text::bytes(chunk.bytes), chunk.capacity_bytes == SIZE_MAX ? "–" : text::bytes(chunk.capacity_bytes),
               fmt::format("{}", counts[i])});
  }
  return "\n" + table.to_string();
}

std::string percent(double value) { return fmt::format("{:.{}f} %", value, value < 10 ? 1 : 0); }

std::string over_bound(const Plan& plan, std::size_t peak) {
  const auto bound = static_cast<double>(plan.lower_bound_bytes());
  if (static_cast<double>(peak) <= bound) return "the bound";
  return "+" + percent((static_cast<double>(peak) - bound) / bound * 100);
}

Table attempts_table(const Plan& plan) {
  using enum Table::Align;
  Table table({{"strategy"}, {"peak", right}, {"above bound", right}, {"of no reuse", right}, {"time", right}, {""}});
  const auto naive = static_cast<double>(plan.naive_bytes());
  table.add({"no reuse", text::bytes(plan.naive_bytes()), over_bound(plan, plan.naive_bytes()), "100 %", "–", ""});
  for (const PlanAttempt& one : plan.attempts()) {
    if (one.note.starts_with("not needed")) continue;
    const bool won = plan.has_locations() && one.strategy == plan.strategy();
    const std::string name = won ? paint(Mood::good, one.strategy) : one.strategy;
    const std::string time = fmt::format("{:.{}f} ms", one.time_ms, one.time_ms < 10 ? 2 : 0);
    if (!one.peak_bytes) {
      table.add({name, "–", "–", "–", one.time_ms == 0 ? "–" : time, paint(Mood::quiet, one.note)});
      continue;
    }
    const std::string note = won ? paint(Mood::good, one.note.empty() ? "best" : "best, " + one.note) : paint(Mood::quiet, one.note);
    table.add({name, text::bytes(*one.peak_bytes), over_bound(plan, *one.peak_bytes),
               naive == 0 ? "–" : percent(static_cast<double>(*one.peak_bytes) / naive * 100), time, note});
  }
  return table;
}

// The first, the last, and those between at about equal steps of what is saved: no more than fit on a page.
std::vector<EdgeTrade> shown(const std::vector<EdgeTrade>& trades) {
  constexpr std::size_t kMost = 12;
  if (trades.size() <= kMost) return trades;
  std::vector<EdgeTrade> out = {trades.front()};
  const std::size_t whole = trades.front().peak_bytes - trades.back().peak_bytes;
  for (const EdgeTrade& one : trades)
    if (trades.front().peak_bytes - one.peak_bytes >= whole / (kMost - 1) * out.size()) out.push_back(one);
  if (out.back() != trades.back()) out.push_back(trades.back());
  return out;
}

// What running at once costs, and what edges bought.
std::string parallel_text(const Plan& plan) {
  const PlanTables& tables = plan.tables();
  std::string out = fmt::format("  in parallel    {} edges added, the longest path {} (without them {})\n", tables.edges.size(),
                                longest_path(plan.graph(), tables.nodes, tables.edges), longest_path(plan.graph(), tables.nodes));
  if (tables.conservative) out += "                 nodes that are not known to wait for one another count as concurrent\n";
  if (plan.trades().size() < 2) return out;
  using enum Table::Align;
  Table table({{"edges", right}, {"peak", right}, {"saved", right}, {"longest path", right}});
  const std::size_t before = plan.trades().front().peak_bytes;
  for (const EdgeTrade& one : shown(plan.trades()))
    table.add({fmt::format("{}", one.edges), text::bytes(one.peak_bytes), text::bytes(before - one.peak_bytes),
               fmt::format("{}", one.longest_path)});
  return out + "\n" + table.to_string();
}

std::string heading(const PlanCommand& command, const PlanSource& source, const Plan& plan) {
  std::string out =
      fmt::format("{}: {} nodes, {} buffers", text::printable(command.path), plan.graph().nodes.size(), plan.buffers().size());
  if (!source.about.empty()) out += ", " + source.about;
  out += fmt::format("\n  without reuse  {}\n  lower bound    {}", text::bytes(plan.naive_bytes()), text::bytes(plan.lower_bound_bytes()));
  out += plan.graph().devices.size() == 1 ? fmt::format(", {}\n", text::printable(plan.describe_bound())) : "\n";
  if (plan.graph().devices.size() > 1)
    for (std::uint32_t i = 0; i < plan.graph().devices.size(); ++i)
      out += fmt::format("  {:<14} {}, at least {}, {}\n", text::printable(plan.graph().devices[i]),
                         text::bytes(plan.tables().arenas[i].bytes), text::bytes(plan.tables().arenas[i].lower_bound_bytes),
                         text::printable(plan.describe_bound(i)));
  if (plan.tables().parallel > 1) out += parallel_text(plan);
  return out;
}

std::string peak_text(const Plan& plan, std::uint32_t device) {
  constexpr std::size_t kMost = 8;
  const Plan::Peak peak = plan.at_peak(device);
  if (peak.values.empty()) return {};
  const std::string node = peak.node < plan.graph().nodes.size() ? plan.graph().describe_node(peak.node) : "the end";
  std::string out = fmt::format("at the peak, {}: {} in {} buffers\n", node, text::bytes(peak.bytes), peak.values.size());
  for (std::size_t i = 0; i < peak.values.size() && i < kMost; ++i)
    out +=
        fmt::format("  {:>9}  {}\n", text::bytes(plan.location(peak.values[i]).extent_bytes), plan.graph().describe_value(peak.values[i]));
  if (peak.values.size() > kMost) out += fmt::format("  {:>9}  and {} more\n", "", peak.values.size() - kMost);
  return out;
}

std::string unplanned_text(const Plan& plan) {
  std::string out;
  for (const auto& [reason, count] : plan.unplanned_by_reason())
    out += fmt::format("{}{} {}", out.empty() ? "not planned: " : ", ", count, to_string(reason));
  return out.empty() ? out : out + "\n";
}

bool past_capacity(const PlanCommand& command, const Plan& plan) {
  if (!command.arenas.empty() || !command.max_chunk.empty()) return true;
  return std::any_of(plan.tables().arenas.begin(), plan.tables().arenas.end(),
                     [&](const PlanArena& arena) { return arena.lower_bound_bytes > plan.tables().capacity_bytes; });
}

std::string verdict(const PlanCommand& command, const Plan& plan) {
  switch (plan.outcome()) {
    case PlanOutcome::optimal:
      return paint(Mood::good, fmt::format("✔ optimal: {}, the lower bound", text::bytes(plan.peak_bytes()))) + "\n";
    case PlanOutcome::feasible:
      return fmt::format("✔ {} by {}, {} above the bound\n", text::bytes(plan.peak_bytes()), plan.strategy(),
                         percent((plan.ratio() - 1) * 100));
    case PlanOutcome::infeasible: {
      const std::string why = past_capacity(command, plan)
                                  ? fmt::format("it does not fit: at least {} are needed{}", text::bytes(plan.lower_bound_bytes()),
                                                plan.tables().capacity_bytes == SIZE_MAX ? ", or one value is larger than every chunk" : "")
                                  : std::string("there is no plan: fixed offsets overlap");
      return paint(Mood::bad, "✘ " + why) + "\n";
    }
    case PlanOutcome::unknown: break;
  }
  return paint(Mood::warning,
               fmt::format("✘ no plan within {} was found; the bound is {}", command.capacity.empty() ? "the arenas" : command.capacity,
                           text::bytes(plan.lower_bound_bytes()))) +
         "\n";
}

// Summarizes the rest of the table in a line.
std::string not_needed(const Plan& plan) {
  const auto count = std::count_if(plan.attempts().begin(), plan.attempts().end(),
                                   [](const PlanAttempt& one) { return one.note.starts_with("not needed"); });
  return count == 0 ? std::string()
                    : paint(Mood::quiet, fmt::format("  {} more were not needed: the bound is reached (--all runs them)", count)) + "\n";
}

std::string plan_text(const PlanCommand& command, const PlanSource& source, const Plan& plan) {
  std::string out = heading(command, source, plan) + "\n" + orders_text(plan) + attempts_table(plan).to_string() + not_needed(plan);
  out += chunks_text(plan);
  if (plan.has_locations())
    for (std::uint32_t device = 0; device < plan.graph().devices.size(); ++device)
      if (plan.tables().arenas[device].bytes != 0) out += "\n" + plan_picture(plan, device) + "\n" + peak_text(plan, device);
  out += unplanned_text(plan);
  return out + verdict(command, plan);
}

std::string plan_json(const PlanCommand& command, const PlanSource& source, const Plan& plan) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().member("file", command.path);
  plan.write_json(json, detail_of(command));
  json.key("unknown").begin_array();
  for (const std::string& name : source.unknown) json.value(name);
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string progress_text(const PlanCommand& command, const PlanProgress& now) {
  const std::string best = now.peak_bytes ? fmt::format(", best so far {}", text::bytes(*now.peak_bytes)) : std::string();
  return fmt::format("planning {}: {} of {} strategies{}, now {}", text::printable(command.path), now.done, now.of, best, now.strategy);
}

Plan plan_source(const PlanCommand& command, Graph graph, PlanOptions options) {
  if (!command.nodes.empty()) options.nodes = parse_nodes(command.nodes, graph, options.after);
  return answer([&] { return berth::plan(std::move(graph), options); }, [](ErrorCode code) { return code == ErrorCode::size_overflow; });
}

std::string file_of_runtime(const PlanCommand& command, const PlanSource& source, const Plan& plan) {
  return answer([&] { return with_storage_ids(source.bytes, plan, command.path); },
                [](ErrorCode code) { return code == ErrorCode::plan_invalid || code == ErrorCode::limit_exceeded; });
}

}  // namespace

Exit run_plan(const PlanCommand& command) {
  os::keep_freed_memory();
  PlanTime time(command);
  PlanOptions options = make_options(command);
  std::optional<Plan> earlier;
  if (!command.after.empty()) earlier = read_plan(command.after, command.max_memory);
  if (earlier) options.after = &*earlier;
  const auto read = [&] { return time.reading([&] { return read_source(command, time); }); };
  if (!command.budget.empty()) {
    if (!command.storage_ids.empty())
      base::refuse("--storage-ids with --budget", "what a budget changes is not in the file", "leave one of them out");
    Graph graph = read().graph;
    if (!command.nodes.empty()) options.nodes = parse_nodes(command.nodes, graph, options.after);
    options.time_limit = time.for_planning();
    return time.planning([&] { return run_budget(command, std::move(graph), std::move(options)); });
  }
  if (!command.move_to.empty()) base::refuse("--move-to without --budget", "nothing is moved then", "give a budget");
  PlanSource source;
  std::optional<Plan> made;
  {
    Progress progress;
    options.on_strategy = [&](const PlanProgress& now) { progress.say(progress_text(command, now)); };
    source = read();
    options.time_limit = time.for_planning();
    made = time.planning([&] { return plan_source(command, std::move(source.graph), options); });
  }
  if (made->has_locations()) {
    // First, as it may be that the file cannot say what the plan does.
    const std::string planned = command.storage_ids.empty() ? std::string() : file_of_runtime(command, source, *made);
    if (!command.svg.empty()) write_output(command.svg, plan_svg(*made));
    if (!command.html.empty()) write_output(command.html, plan_html(*made, command.path));
    if (!command.out.empty()) write_output(command.out, to_json(PlanFile{*made}));
    if (!command.storage_ids.empty()) write_output(command.storage_ids, planned);
  }
  print(command.json ? plan_json(command, source, *made) : plan_text(command, source, *made));
  if (!made->has_locations() && !(command.svg.empty() && command.html.empty() && command.out.empty() && command.storage_ids.empty()))
    print_error("nothing was written: there is no plan to write", "give it more capacity");
  return made->has_locations() ? Exit::ok : Exit::no;
}

}  // namespace berth::internal::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <optional>
#include <vector>

#include "base/limited.h"
#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/table.h"

namespace berth::internal::cli {

namespace {

// The result of one strategy: figures, or an error.
struct Attempt {
  std::string strategy;
  std::optional<ReplayResult> result;
  std::optional<Error> error;
};

struct ReplaySource {
  Trace trace;
  ReplayScript script;
  ReadLimits limits;  // for all that is made of the file
};

std::size_t bytes_of(const Trace& trace) {
  std::size_t bytes = trace.events.size() * sizeof(TraceEvent) + trace.tags.size() * sizeof(trace.tags[0]);
  for (const std::string& word : trace.words) bytes += sizeof word + word.size();
  return bytes;
}

ReplaySource open_source(const ReplayCommand& command) {
  Input input = read_input(command.path, parse_room(command.max_memory));
  const ReadLimits limits{.memory_bytes = input.room_bytes};
  ReplaySource source{read_trace(input.bytes, command.path, limits), {}, limits};
  input = {};
  source.script = limited(bytes_of(source.trace), command.path, limits, [&] { return plan_replay(source.trace.events, command.scale); });
  if (command.html.empty()) source.trace.events = {};
  return source;
}

void write_report(const ReplayCommand& command, const ReplaySource& source) {
  const StatusLine status("writing the report");
  const TraceHtmlOptions options{.device = command.device, .strategy = command.strategy, .scale = command.scale};
  const std::string title = command.path.substr(command.path.rfind('/') + 1);
  const std::size_t held = bytes_of(source.trace) + source.script.steps.size() * sizeof(ReplayStep);
  write_output(command.html, limited(held, command.path, source.limits, [&] { return trace_html(source.trace, title, options); }));
}

ReplayResult replay_once(const ReplayCommand& command, const ReplayScript& script, const std::string& strategy) {
  const StatusLine status(fmt::format("replaying with {}", strategy.empty() ? "the default strategy" : text::printable(strategy)));
  return replay(
      script,
      {.device = command.device, .strategy = strategy, .touch = command.touch, .threads = command.threads, .percentiles = !command.once});
}

Attempt attempt(const ReplayCommand& command, const ReplayScript& script, const std::string& strategy) {
  try {
    return {strategy, replay_once(command, script, strategy), {}};
  } catch (const Error& error) {  // a failed strategy is a row of the comparison
    return {strategy, {}, error};
  }
}

void write_source(JsonWriter& json, const ReplayCommand& command, const ReplaySource& source) {
  json.member("trace", command.path).member("scale", command.scale);
  json.member("dropped", source.trace.dropped).member("unpaired", source.trace.unpaired).member("complete", source.trace.complete);
}

std::string result_json(const ReplayCommand& command, const ReplaySource& source, const ReplayResult& result) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object();
  write_source(json, command, source);
  result.write_json(json);
  json.end_object();
  return json.take() + "\n";
}

std::string compare_json(const ReplayCommand& command, const ReplaySource& source, const std::vector<Attempt>& attempts) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object();
  write_source(json, command, source);
  json.key("strategies").begin_array();
  for (const Attempt& one : attempts) {
    json.begin_object();
    if (one.result)
      one.result->write_json(json);
    else
      json.member("strategy", one.strategy).key("error").json(to_json(*one.error));
    json.end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string nanoseconds(std::optional<double> ns) { return ns ? fmt::format("{:.{}f} ns", *ns, *ns < 100 ? 1 : 0) : kUnknown; }
std::string byte_count(std::optional<std::size_t> bytes) { return bytes ? text::bytes(*bytes) : kUnknown; }
std::string count(std::optional<std::uint64_t> number) { return number ? fmt::format("{}", *number) : kUnknown; }

Table make_table() {
  using enum Table::Align;
  return Table({{"strategy"},
                {"wall", right},
                {"per event", right},
                {"p50", right},
                {"p99", right},
                {"p99.9", right},
                {"committed", right},
                {"ratio", right},
                {"commits", right},
                {"decommits", right},
                {"resident", right},
                {""}});
}

void add_row(Table& table, const ReplayResult& r) {
  table.add({paint(Mood::strong, r.strategy), fmt::format("{:.2f} ms", r.wall_ms), nanoseconds(r.ns_per_event), nanoseconds(r.p50_ns),
             nanoseconds(r.p99_ns), nanoseconds(r.p999_ns), byte_count(r.peak_committed_bytes),
             r.ratio ? fmt::format("{:.3f}", *r.ratio) : kUnknown, count(r.commits), count(r.decommits), byte_count(r.peak_resident_bytes),
             ""});
}

void add_row(Table& table, const Attempt& one) {
  if (one.result) return add_row(table, *one.result);
  std::vector<std::string> cells(11, kUnknown);
  cells[0] = paint(Mood::strong, one.strategy);
  cells.push_back(paint(Mood::bad, one.error->why()));
  table.add(std::move(cells));
}

std::string heading(const ReplayCommand& command, const ReplaySource& source) {
  const Trace& trace = source.trace;
  std::string out = fmt::format("{} on {}: {} events, {} live at the peak", text::printable(command.path),
                                Device(command.device).to_string(), source.script.steps.size(), text::bytes(source.script.peak_live_bytes));
  if (command.scale != 1) out += fmt::format(", sizes divided by {}", command.scale);
  if (command.threads != 1) out += fmt::format(", {} threads", command.threads);
  if (command.touch) out += ", blocks touched";
  out += '\n';
  if (trace.dropped != 0) out += fmt::format("  events dropped when the trace was written: {}\n", trace.dropped);
  if (trace.unpaired != 0) out += fmt::format("  frees left out, because their allocation is not in the trace: {}\n", trace.unpaired);
  if (!trace.complete) out += "  the trace is incomplete: the program that wrote it did not finish\n";
  return out;
}

Exit compare(const ReplayCommand& command, const ReplaySource& source) {
  std::vector<std::string> strategies = allocator_names();
  strategies.emplace_back(kMallocStrategy);
  std::vector<Attempt> attempts;
  bool any = false;
  for (const std::string& strategy : strategies) any |= attempts.emplace_back(attempt(command, source.script, strategy)).result.has_value();
  if (command.json) {
    print(compare_json(command, source, attempts));
  } else {
    Table table = make_table();
    for (const Attempt& one : attempts) add_row(table, one);
    print(heading(command, source) + table.to_string());
  }
  return any ? Exit::ok : Exit::no;
}

Exit replay_one(const ReplayCommand& command, const ReplaySource& source) {
  const ReplayResult result = replay_once(command, source.script, command.strategy);
  if (!command.html.empty()) write_report(command, source);
  if (command.json) {
    print(result_json(command, source, result));
  } else {
    Table table = make_table();
    add_row(table, result);
    print(heading(command, source) + table.to_string());
  }
  return Exit::ok;
}

// Prints the full report: who holds the memory, what was tried, what would be enough.
Exit say_out_of_memory(const ReplayCommand& command, const OutOfMemory& error) {
  if (command.json) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().member("error", to_string(error.code())).key("report");
    error.report().write_json(json);
    json.end_object();
    print(json.take() + "\n");
  }
  print_error(error);
  print_error_details(error.report().to_string());
  return Exit::no;
}

}  // namespace

Exit run_replay(const ReplayCommand& command) {
  (void)backend(command.device);  // report an unavailable device before reading the trace
  const ReplaySource source = open_source(command);
  try {
    return command.compare ? compare(command, source) : replay_one(command, source);
  } catch (const OutOfMemory& error) {
    return say_out_of_memory(command, error);
  }
}

}  // namespace berth::internal::cli

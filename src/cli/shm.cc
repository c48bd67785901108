// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "cli/commands.h"
#include "cli/table.h"

// `berth shm`: lists named shared storages with their holders, and the names that processes listen under for channels,
// and removes those of dead processes.
namespace berth::internal::cli {

namespace {

std::string age(std::uint64_t nanoseconds) {
  const std::chrono::seconds seconds(nanoseconds / 1'000'000'000);
  if (seconds >= std::chrono::hours(48)) return fmt::format("{} d", seconds / std::chrono::hours(24));
  if (seconds >= std::chrono::minutes(120)) return fmt::format("{} h", seconds / std::chrono::hours(1));
  if (seconds >= std::chrono::seconds(120)) return fmt::format("{} min", seconds / std::chrono::minutes(1));
  return fmt::format("{} s", seconds.count());
}

std::string holders(const NamedShared& one) {
  std::string out;
  for (const SharedHolder& holder : one.holders) {
    const std::string text = fmt::format("{}{}", holder.process, holder.is_alive ? "" : " (dead)");
    out += (out.empty() ? "" : ", ") + (holder.is_alive ? text : paint(Mood::bad, text));
  }
  return out.empty() ? paint(Mood::quiet, "nobody") : out;
}

void write_one(JsonWriter& json, const NamedShared& one) {
  json.begin_object().member("name", one.name).member("ours", one.is_ours);
  if (!one.is_ours) {
    json.member("problem", one.problem).end_object();
    return;
  }
  json.member("size_bytes", one.size_bytes).member("memory_bytes", one.memory_bytes).member("dtype", to_string(one.dtype));
  json.key("shape").begin_array();
  for (const std::int64_t dim : one.shape) json.value(dim);
  json.end_array().member("age_s", static_cast<double>(one.age_ns) / 1e9).member("dead", one.is_dead());
  json.key("holders").begin_array();
  for (const SharedHolder& holder : one.holders)
    json.begin_object().member("process", holder.process).member("alive", holder.is_alive).end_object();
  json.end_array().end_object();
}

void write_storages(JsonWriter& json, std::string_view key, const std::vector<NamedShared>& all) {
  json.key(key).begin_array();
  for (const NamedShared& one : all) write_one(json, one);
  json.end_array();
}

std::string list_json(const std::vector<NamedShared>& all, const std::vector<NamedListener>& listeners) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object();
  write_storages(json, "storages", all);
  json.key("listeners").begin_array();
  for (const NamedListener& one : listeners) json.begin_object().member("name", one.name).member("dead", !one.is_alive).end_object();
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string reaped_json(const std::vector<NamedShared>& removed, const std::vector<std::string>& listeners) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object();
  write_storages(json, "removed", removed);
  json.key("removed_listeners").begin_array();
  for (const std::string& one : listeners) json.value(one);
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string to_lines(const std::vector<NamedListener>& listeners) {
  std::string out;
  for (const NamedListener& one : listeners) {
    const std::string name = paint(one.is_alive ? Mood::strong : Mood::quiet, text::printable(one.name));
    out += fmt::format("listener {}{}\n", name, one.is_alive ? "" : paint(Mood::bad, " (dead)"));
  }
  return out;
}

std::string to_table(const std::vector<NamedShared>& all) {
  using enum Table::Align;
  Table table({{"name"}, {"size", right}, {"what"}, {"age", right}, {"holders"}});
  for (const NamedShared& one : all) {
    const std::string name = paint(one.is_dead() || !one.is_ours ? Mood::quiet : Mood::strong, text::printable(one.name));
    if (one.is_ours)
      table.add({name, text::bytes(one.size_bytes), fmt::format("{} {}", to_string(one.dtype), one.shape.to_string()), age(one.age_ns),
                 holders(one)});
    else
      table.add({name, "", paint(Mood::warning, "not ours: " + text::printable(one.problem)), "", ""});
  }
  return table.to_string();
}

}  // namespace

Exit run_shm_list(bool json) {
  const std::vector<NamedShared> all = list_shared();
  const std::vector<NamedListener> listeners = list_listeners();
  if (json) {
    print(list_json(all, listeners));
    return Exit::ok;
  }
  print(all.empty() ? std::string("no named shared storages\n") : to_table(all));
  print(to_lines(listeners));
  const auto dead = std::ranges::count_if(all, &NamedShared::is_dead) +
                    std::ranges::count_if(listeners, [](const NamedListener& one) { return !one.is_alive; });
  if (dead > 0) print(fmt::format("\n{} of them {} dead: berth shm reap removes what no process holds\n", dead, dead == 1 ? "is" : "are"));
  return Exit::ok;
}

Exit run_shm_reap(bool json) {
  const std::vector<NamedShared> removed = reap_named();
  const std::vector<std::string> listeners = reap_listeners();
  if (json) {
    print(reaped_json(removed, listeners));
    return Exit::ok;
  }
  for (const std::string& one : listeners) print(fmt::format("removed the listener {}\n", text::printable(one)));
  std::uint64_t bytes = 0;
  for (const NamedShared& one : removed) {
    bytes += one.memory_bytes;
    print(fmt::format("removed {}, {}\n", text::printable(one.name), text::bytes(one.memory_bytes)));
  }
  if (!removed.empty() || listeners.empty())
    print(removed.empty() ? std::string("nothing to reap\n") : fmt::format("{} of {} freed\n", text::bytes(bytes), removed.size()));
  return Exit::ok;
}

// The second process of the tour: opens what the first has shared, reports what it found, and kills itself with
// SIGKILL.
Exit run_tour_guest(const std::string& name) {
  const Storage w = open_shared(name);
  const auto elements = w.elements<const float>();
  const bool right = std::ranges::all_of(elements, [](float value) { return value == 1.5F; });
  w.select(0, 0).fill(2.5);
  print(fmt::format("{}\n", right ? elements.size() : 0));
  std::raise(SIGKILL);
  return Exit::no;
}

}  // namespace berth::internal::cli

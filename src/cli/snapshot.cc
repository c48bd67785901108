// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "cli/commands.h"
#include "cli/saved_snapshot.h"
#include "cli/table.h"

// `berth snapshot`: files that save_snapshot, a signal or an OutOfMemory wrote.
namespace berth::internal::cli {

namespace {

std::string when(std::uint64_t taken_ns) {
  const auto seconds = static_cast<std::time_t>(taken_ns / 1'000'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

std::string heading(const ProcessSnapshot& snapshot) {
  return fmt::format("{} ({}), {}: {}\n", text::printable(snapshot.program), snapshot.process, when(snapshot.taken_ns),
                     text::printable(snapshot.reason));
}

std::string word_or(const std::string& word, std::string_view none) {
  return word.empty() ? paint(Mood::quiet, none) : text::printable(word);
}

std::string signed_bytes(std::int64_t bytes) {
  return fmt::format("{}{}", bytes < 0 ? "-" : "+", text::bytes(static_cast<std::uint64_t>(bytes < 0 ? -bytes : bytes)));
}

std::string pools_table(const ProcessSnapshot& snapshot) {
  using enum Table::Align;
  Table table({{"device"},
               {"allocator"},
               {"committed", right},
               {"in use", right},
               {"rounding", right},
               {"waiting", right},
               {"free", right},
               {"largest free", right},
               {"fragments", right},
               {"blocks", right}});
  for (const Snapshot& pool : snapshot.pools) {
    const SnapshotFigures& f = pool.figures;
    if (!pool.has_blocks || f.committed_bytes == 0) continue;
    table.add({paint(Mood::strong, text::printable(pool.device)), fmt::format("{} {}", text::printable(pool.allocator), pool.allocator_id),
               text::bytes(f.committed_bytes), text::bytes(f.requested_bytes), text::bytes(f.rounding_bytes), text::bytes(f.waiting_bytes),
               text::bytes(f.free_bytes), text::bytes(f.largest_free_bytes), fmt::format("{:.0f} %", 100 * pool.fragmentation()),
               fmt::format("{}", f.live_blocks)});
  }
  return table.to_string();
}

std::string holders_table(const std::vector<SnapshotGroup>& groups, std::size_t most) {
  using enum Table::Align;
  Table table({{"bytes", right}, {"blocks", right}, {"device"}, {"tag"}, {"site"}});
  for (const SnapshotGroup& group : std::span(groups).first(std::min(most, groups.size())))
    table.add({text::bytes(group.bytes), fmt::format("{}", group.blocks), text::printable(group.device), word_or(group.tag, "no tag"),
               word_or(group.site, "unknown")});
  return table.to_string();
}

void write_group(JsonWriter& json, const SnapshotGroup& group) {
  json.member("device", group.device).member("allocator", group.allocator).member("allocator_id", group.allocator_id);
  json.member("tag", group.tag).member("site", group.site);
}

std::string show_json(const ProcessSnapshot& snapshot, const std::vector<SnapshotGroup>& groups, std::size_t most) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().member("program", snapshot.program).member("process", snapshot.process).member("taken_ns", snapshot.taken_ns);
  json.member("reason", snapshot.reason).key("pools").begin_array();
  for (const Snapshot& pool : snapshot.pools) {
    json.begin_object().member("device", pool.device).member("allocator", pool.allocator).member("allocator_id", pool.allocator_id);
    json.member("settings", pool.settings).member("committed_bytes", pool.figures.committed_bytes);
    json.member("requested_bytes", pool.figures.requested_bytes).member("rounding_bytes", pool.figures.rounding_bytes);
    json.member("waiting_bytes", pool.figures.waiting_bytes).member("free_bytes", pool.figures.free_bytes);
    json.member("largest_free_bytes", pool.figures.largest_free_bytes).member("fragmentation", pool.fragmentation());
    json.member("live_blocks", pool.figures.live_blocks).key("stats");
    pool.stats.write_json(json);
    json.end_object();
  }
  json.end_array().key("holders").begin_array();
  for (const SnapshotGroup& group : std::span(groups).first(std::min(most, groups.size()))) {
    json.begin_object();
    write_group(json, group);
    json.member("blocks", group.blocks).member("bytes", group.bytes).end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string diff_json(const std::vector<SnapshotChange>& changes) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("changes").begin_array();
  for (const SnapshotChange& change : changes) {
    json.begin_object();
    write_group(json, change.after);
    json.member("before_bytes", change.before.bytes).member("after_bytes", change.after.bytes).member("bytes", change.bytes());
    json.member("before_blocks", change.before.blocks).member("after_blocks", change.after.blocks).member("blocks", change.blocks());
    json.end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace

Exit run_snapshot_show(const SnapshotCommand& command) {
  const SavedSnapshot saved = open_snapshot(command.path, command.max_memory);
  const ProcessSnapshot& snapshot = saved.content;
  if (command.csv) {
    print(made_of(saved, [&] { return to_csv(snapshot); }));
    return Exit::ok;
  }
  const std::vector<SnapshotGroup> groups = made_of(saved, [&] { return group_blocks(snapshot); });
  if (command.json) {
    print(show_json(snapshot, groups, command.top));
  } else {
    print(heading(snapshot) + pools_table(snapshot) + "\n" + holders_table(groups, command.top));
    if (groups.size() > command.top) print(fmt::format("and {} more: --top {}\n", groups.size() - command.top, groups.size()));
  }
  return Exit::ok;
}

Exit run_snapshot_diff(const SnapshotCommand& command) {
  const SavedSnapshot before = open_snapshot(command.path, command.max_memory);
  const SavedSnapshot after = open_snapshot(command.other, command.max_memory);
  // Each file has a limit of its own; the changes are made within that of the one that may be larger.
  const SavedSnapshot& larger = before.limits.memory_bytes > after.limits.memory_bytes ? before : after;
  const std::vector<SnapshotChange> changes = made_of(larger, [&] { return diff_snapshots(before.content, after.content); });
  if (command.json) {
    print(diff_json(changes));
    return Exit::ok;
  }
  using enum Table::Align;
  Table table({{"bytes", right}, {"blocks", right}, {"before", right}, {"after", right}, {"device"}, {"tag"}, {"site"}});
  for (const SnapshotChange& change : std::span(changes).first(std::min(command.top, changes.size())))
    table.add({paint(change.bytes() > 0 ? Mood::warning : Mood::good, signed_bytes(change.bytes())), fmt::format("{:+}", change.blocks()),
               text::bytes(change.before.bytes), text::bytes(change.after.bytes), text::printable(change.after.device),
               word_or(change.after.tag, "no tag"), word_or(change.after.site, "unknown")});
  print("before: " + heading(before.content) + "after:  " + heading(after.content) +
        (changes.empty() ? "no difference\n" : table.to_string()));
  if (changes.size() > command.top) print(fmt::format("and {} more: --top {}\n", changes.size() - command.top, changes.size()));
  return Exit::ok;
}

}  // namespace berth::internal::cli

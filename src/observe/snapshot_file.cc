// SPDX-License-Identifier: Apache-2.0
#include "berth/observe/snapshot_file.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "berth/base/json.h"
#include "berth/memory/allocator.h"
#include "memory/process_budget.h"
#include "os/file/new_file.h"
#include "os/file/shared_file.h"
#include "os/system.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

std::atomic<std::uint64_t> g_saved{0};

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) text.replace(at, what.size(), by);
}

[[noreturn]] void throw_unwritten(const std::string& path, const Failure& failure) {
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("saving a snapshot to ", text::quoted(path)),
                       failure.os_error == 0 ? failure.why : std::strerror(failure.os_error), "name a file that can be created"},
                      {{"path", text::printable(path)}, {"errno", failure.os_error}});
}

void write_whole(const std::string& path, const std::string& content) {
  const Status done = os::write_new_file(path, content);
  if (!done) throw_unwritten(path, done.failure());
}

using GroupKey = std::tuple<std::size_t, std::string_view, std::string_view>;  // pool, tag, site

void take_group(std::string_view device, std::string_view allocator, std::string_view tag, std::string_view site) {
  base::take(sizeof(SnapshotGroup) + device.size() + allocator.size() + tag.size() + site.size());
}
void take_group(const SnapshotGroup& group) { take_group(group.device, group.allocator, group.tag, group.site); }

std::map<GroupKey, SnapshotGroup> groups_of(const ProcessSnapshot& snapshot) {
  std::map<GroupKey, SnapshotGroup> groups;
  for (std::size_t i = 0; i < snapshot.pools.size(); ++i) {
    const Snapshot& pool = snapshot.pools[i];
    for (const SnapshotBlock& block : pool.blocks) {
      if (block.state != BlockState::live) continue;
      SnapshotGroup& group = groups[{i, pool.tags[block.tag], pool.sites[block.site]}];
      if (group.blocks++ == 0) {
        base::take(sizeof(GroupKey) + base::kHashEntry);
        take_group(pool.device, pool.allocator, pool.tags[block.tag], pool.sites[block.site]);
        group.device = pool.device;
        group.allocator = pool.allocator;
        group.allocator_id = pool.allocator_id;
        group.tag = pool.tags[block.tag];
        group.site = pool.sites[block.site];
      }
      group.bytes += block.requested;
    }
  }
  return groups;
}

auto names_of(const SnapshotGroup& group) { return std::tie(group.device, group.allocator, group.allocator_id, group.tag, group.site); }

// For each pool of `after`, the index of the same pool in `before`, or SIZE_MAX.
std::vector<std::size_t> match_pools(const ProcessSnapshot& before, const ProcessSnapshot& after) {
  const bool same = before.process == after.process && before.program == after.program;
  std::vector<bool> taken(before.pools.size());
  std::vector<std::size_t> matches;
  for (const Snapshot& pool : after.pools) {
    std::size_t found = SIZE_MAX;
    for (std::size_t i = 0; i < before.pools.size() && found == SIZE_MAX; ++i) {
      const Snapshot& other = before.pools[i];
      const bool equal = same ? pool.allocator_id == other.allocator_id : pool.device == other.device && pool.allocator == other.allocator;
      if (equal && !taken[i]) found = i;
    }
    if (found != SIZE_MAX) taken[found] = true;
    matches.push_back(found);
  }
  return matches;
}

SnapshotGroup emptied(SnapshotGroup group) {
  group.blocks = group.bytes = 0;
  return group;
}

}  // namespace

ProcessSnapshot take_snapshot(std::string_view reason) {
  ProcessSnapshot made{.program = os::program_name(),
                       .process = os::process_id(),
                       .taken_ns = os::wall_time_ns(),
                       .reason = std::string(reason),
                       .pools = {}};
  for (const std::shared_ptr<Allocator>& allocator : strategies_of_process()) made.pools.push_back(allocator->snapshot());
  return made;
}

void ProcessSnapshot::write_json(JsonWriter& json) const {
  json.begin_object().member("format", "berth snapshot").member("version", 1);
  json.member("program", program).member("process", process).member("taken_ns", taken_ns);
  json.member("reason", reason).key("pools").begin_array();
  for (const Snapshot& pool : pools) pool.write_json(json);
  json.end_array().end_object();
}

std::string save_snapshot(const std::string& path, std::string_view reason) {
  std::string named = path;
  replace_all(named, "%p", std::to_string(os::process_id()));
  replace_all(named, "%n", std::to_string(g_saved.fetch_add(1, std::memory_order_relaxed) + 1));
  write_whole(named, to_json(take_snapshot(reason)) + "\n");
  return named;
}

std::vector<SnapshotGroup> group_blocks(const ProcessSnapshot& snapshot) {
  std::vector<SnapshotGroup> groups;
  std::map<GroupKey, SnapshotGroup> all = groups_of(snapshot);
  base::reserve(groups, all.size());
  for (auto& [key, group] : all) groups.push_back(std::move(group));
  std::ranges::sort(groups, [](const SnapshotGroup& a, const SnapshotGroup& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : names_of(a) < names_of(b);
  });
  return groups;
}

std::vector<SnapshotChange> diff_snapshots(const ProcessSnapshot& before, const ProcessSnapshot& after) {
  const std::vector<std::size_t> matches = match_pools(before, after);
  std::map<GroupKey, SnapshotGroup> old = groups_of(before);
  std::vector<SnapshotChange> changes;
  for (const auto& [key, group] : groups_of(after)) {
    const auto& [pool, tag, site] = key;
    const auto known = matches[pool] == SIZE_MAX ? old.end() : old.find({matches[pool], tag, site});
    SnapshotChange change{known == old.end() ? emptied(group) : known->second, group};
    if (known != old.end()) old.erase(known);
    if (change.bytes() == 0 && change.blocks() == 0) continue;
    take_group(change.before);
    base::append(changes, std::move(change));
  }
  for (auto& [key, group] : old) {
    take_group(group);
    SnapshotGroup none = emptied(group);
    base::append(changes, {std::move(group), std::move(none)});
  }
  std::ranges::sort(changes, [](const SnapshotChange& a, const SnapshotChange& b) {
    const std::int64_t by_a = std::abs(a.bytes());
    const std::int64_t by_b = std::abs(b.bytes());
    return by_a != by_b ? by_a > by_b : names_of(a.after) < names_of(b.after);
  });
  return changes;
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/json.h"
#include "berth/base/read_limits.h"
#include "berth/export.h"
#include "berth/memory/snapshot.h"

// Saves snapshots of a whole process to files, and reads them back:
//
//     save_snapshot("before.json");
//     serve_one_request();
//     save_snapshot("after.json");             // berth snapshot diff before.json after.json
//
// Without changing the program: BERTH_SNAPSHOT_SIGNAL=USR2 saves one whenever the process receives that signal,
// and BERTH_SNAPSHOT_ON_OOM=dir one for each of the first 10 OutOfMemory errors (docs/observing.md). Any
// thread; no lock is held while a file is written.
namespace berth {

struct ProcessSnapshot {
  std::string program;          // name of the executable
  std::int64_t process = 0;     // id
  std::uint64_t taken_ns = 0;   // since 1970, UTC
  std::string reason;           // "asked", "signal", or the message of an OutOfMemory
  std::vector<Snapshot> pools;  // of every live strategy, the oldest first
  friend bool operator==(const ProcessSnapshot&, const ProcessSnapshot&) = default;

  BERTH_EXPORT void write_json(JsonWriter& json) const;
};

// Takes a snapshot of every live strategy of the process. Adaptors over a strategy have no snapshot of their
// own.
BERTH_EXPORT ProcessSnapshot take_snapshot(std::string_view reason = "asked");

// Takes a snapshot and writes it as JSON; an existing file is replaced atomically once the new one is complete.
// In the path `%p` stands for the process id and `%n` for a counter. Returns the path. Throws ArgumentError
// when the file cannot be written.
BERTH_EXPORT std::string save_snapshot(const std::string& path, std::string_view reason = "asked");

// Parses a snapshot. `name` is for messages. Throws FormatError, saying why, for anything that is not a
// consistent snapshot: the result passes Snapshot::audit; FormatError(limit_exceeded) for what takes more memory than
// `limits` allow.
BERTH_EXPORT ProcessSnapshot read_snapshot(std::string_view bytes, std::string_view name = "the snapshot", const ReadLimits& limits = {});

// Live blocks of one allocator with the same tag and site.
struct SnapshotGroup {
  std::string device;
  std::string allocator;
  std::uint64_t allocator_id = 0;
  std::string tag;
  std::string site;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  // as requested
};
// Most bytes first; ties are ordered by name, so that reports are deterministic.
BERTH_EXPORT std::vector<SnapshotGroup> group_blocks(const ProcessSnapshot& snapshot);

struct SnapshotChange {
  SnapshotGroup before;  // blocks and bytes are 0 where there were none
  SnapshotGroup after;   // the same names
  std::int64_t bytes() const noexcept { return static_cast<std::int64_t>(after.bytes) - static_cast<std::int64_t>(before.bytes); }
  std::int64_t blocks() const noexcept { return static_cast<std::int64_t>(after.blocks) - static_cast<std::int64_t>(before.blocks); }
};
// The groups that differ, the largest difference first. Allocators of one process are matched by id, those of
// two processes by device and name, in order.
BERTH_EXPORT std::vector<SnapshotChange> diff_snapshots(const ProcessSnapshot& before, const ProcessSnapshot& after);

}  // namespace berth

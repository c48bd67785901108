// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/json.h"
#include "berth/export.h"
#include "berth/memory/snapshot.h"

// Snapshots of a whole process, in a file and back:
//
//     save_snapshot("before.json");
//     serve_one_request();
//     save_snapshot("after.json");             // berth snapshot diff before.json after.json
//
// Without a change to the program: BERTH_SNAPSHOT_SIGNAL=USR2 saves one whenever the process gets that signal, and BERTH_SNAPSHOT_ON_OOM=dir one
// with every OutOfMemory. docs/observing.md has both. Any thread; no lock is held while anything is written.
namespace berth {

struct ProcessSnapshot {
  std::string program;          // its file's name
  std::int64_t process = 0;     // id
  std::uint64_t taken_ns = 0;   // since 1970, UTC
  std::string reason;           // why it was taken: "asked", "signal", or the message of an OutOfMemory
  std::vector<Snapshot> pools;  // of every allocator that holds memory of a device, the oldest first
  friend bool operator==(const ProcessSnapshot&, const ProcessSnapshot&) = default;
};

// Every strategy of the process that lives. Adaptors over them are not told apart from them.
BERTH_EXPORT ProcessSnapshot take_snapshot(std::string_view reason = "asked");

// Takes one and writes it, as JSON, into a new file that takes the place of one of that name only when it is whole. In the path `%p` stands
// for the process id and `%n` for a number that counts up. Returns the path. Throws ArgumentError when the file cannot be written.
BERTH_EXPORT std::string save_snapshot(const std::string& path, std::string_view reason = "asked");

BERTH_EXPORT std::string to_json(const ProcessSnapshot& snapshot);

// Reads one back. `name` is for messages. Throws FormatError for anything that is not a snapshot that makes sense, saying where: what it
// returns passes Snapshot::audit.
BERTH_EXPORT ProcessSnapshot read_snapshot(std::string_view bytes, std::string_view name = "the snapshot");

// What live blocks of one kind hold: those of one allocator with the same tag and site.
struct SnapshotGroup {
  std::string device;
  std::string allocator;
  std::uint64_t allocator_id = 0;
  std::string tag;
  std::string site;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  // as requested
};
// Most bytes first; equal ones by their names, so that reports are the same on every run.
BERTH_EXPORT std::vector<SnapshotGroup> group_blocks(const ProcessSnapshot& snapshot);

struct SnapshotChange {
  SnapshotGroup before;  // blocks and bytes are 0 where there were none
  SnapshotGroup after;   // the same names
  std::int64_t bytes() const noexcept { return static_cast<std::int64_t>(after.bytes) - static_cast<std::int64_t>(before.bytes); }
  std::int64_t blocks() const noexcept { return static_cast<std::int64_t>(after.blocks) - static_cast<std::int64_t>(before.blocks); }
};
// The groups that differ, the largest difference first. Allocators of one process are matched by id, those of two processes by
// device and name, in their order.
BERTH_EXPORT std::vector<SnapshotChange> diff_snapshots(const ProcessSnapshot& before, const ProcessSnapshot& after);

}  // namespace berth

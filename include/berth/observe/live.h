// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/json.h"
#include "berth/export.h"
#include "berth/memory/stats.h"

// A running process's memory, observed from another process: what `berth top` shows.
//
// With BERTH_LIVE=1, or after expose_live(), a process keeps counters in a small shared-memory file that only
// the same user can read: its allocators with their statistics, and the tags that hold the most. A background
// thread renews it a few times a second, which locks each pool briefly. Readers only read: the process does not
// know whether there are any. The file is removed when the process exits; that of a killed process is removed
// by the next reader. Containers that share the directory (BERTH_LIVE_DIR, or /dev/shm) see each other's
// processes. Any thread.
namespace berth {

struct LiveTag {
  std::string tag;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

struct LivePool {
  std::string device;
  std::string allocator;
  std::uint64_t id = 0;
  Stats stats;
  std::vector<LiveTag> tags;  // those that hold the most, most first; empty for a pool with very many blocks
};

struct LiveProcess {
  std::int64_t process = 0;
  bool elsewhere = false;        // the id is of another PID namespace, such as a container's
  std::string program;           // name of the executable
  std::uint64_t started_ns = 0;  // since 1970, UTC: when it began to expose itself
  std::uint64_t renewed_ns = 0;  // when the file was last renewed
  std::uint64_t renewals = 0;
  std::vector<LivePool> pools;
  std::uint64_t pools_left_out = 0;  // for which the file had no room

  BERTH_EXPORT void write_json(JsonWriter& json) const;
};

// Begins to expose this process; does nothing when it is exposed already. Throws AccessError when the file
// cannot be made.
BERTH_EXPORT void expose_live();
BERTH_EXPORT bool is_live() noexcept;

// The processes of this user that are exposed. Removes the files of dead processes.
BERTH_EXPORT std::vector<LiveProcess> live_processes();
// One by id; nullopt when there is none, it is not exposed, or belongs to another user. A process of this PID
// namespace is preferred.
BERTH_EXPORT std::optional<LiveProcess> read_live(std::int64_t process);

}  // namespace berth

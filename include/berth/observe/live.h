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

// A running process's memory, seen from another: what `berth top` shows.
//
// With BERTH_LIVE=1, or after expose_live(), a process keeps a page of counters in a small file of shared memory that the same user, and nobody
// else, can read: its allocators with their figures, and the tags that hold the most. A thread of berth's renews it a few times a second; asking costs each
// pool a lock hop. Readers only read: the process does not know whether there are any. The page goes with the process; of one that was
// killed it stays until the next one looks. Containers that share the folder (BERTH_LIVE_DIR, or /dev/shm) see one another's.
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
  std::vector<LiveTag>
      tags;  // those that hold the most, most first; where there are very many blocks they are not looked through, and it is empty
};

struct LiveProcess {
  std::int64_t process = 0;
  bool elsewhere = false;        // the number is of another PID namespace, as a container has: here it may be another process's
  std::string program;           // its file's name
  std::uint64_t started_ns = 0;  // since 1970, UTC: when it began to expose itself
  std::uint64_t renewed_ns = 0;  // and when the page was last renewed
  std::uint64_t renewals = 0;
  std::vector<LivePool> pools;
  std::uint64_t pools_left_out = 0;  // there was no room for more on the page

  BERTH_EXPORT void write_json(JsonWriter& json) const;
};

// Begins to expose this process; does nothing when it is exposed already. Throws AccessError when the page cannot be made.
BERTH_EXPORT void expose_live();
BERTH_EXPORT bool is_live() noexcept;

// The processes of this user that can be read. Pages of the dead are removed on the way.
BERTH_EXPORT std::vector<LiveProcess> live_processes();
// One by id; nothing when there is none, it exposes nothing, or is another user's. One of this PID namespace comes before those elsewhere.
BERTH_EXPORT std::optional<LiveProcess> read_live(std::int64_t process);

}  // namespace berth

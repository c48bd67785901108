// SPDX-License-Identifier: Apache-2.0
#include "cli/saved_snapshot.h"

#include <vector>

#include "cli/input.h"

namespace berth::internal::cli {

namespace {

std::size_t bytes_of(const std::vector<std::string>& words) {
  std::size_t bytes = 0;
  for (const std::string& word : words) bytes += sizeof word + word.size();
  return bytes;
}

}  // namespace

SavedSnapshot open_snapshot(const std::string& path, const std::string& max_memory) {
  const Input input = read_input(path, parse_room(max_memory));
  const ReadLimits limits{.memory_bytes = input.room_bytes};
  return {read_snapshot(input.bytes, path, limits), path, limits};
}

std::size_t bytes_of(const ProcessSnapshot& snapshot) {
  std::size_t bytes = snapshot.program.size() + snapshot.reason.size();
  for (const Snapshot& pool : snapshot.pools) {
    bytes += sizeof pool + pool.device.size() + pool.allocator.size() + pool.settings.size() + bytes_of(pool.tags) + bytes_of(pool.sites);
    bytes += pool.memory.size() * sizeof(MemoryRun) + pool.blocks.size() * sizeof(SnapshotBlock);
    bytes += pool.free.size() * sizeof(FreeRun) + pool.streams.size() * sizeof(StreamWait);
  }
  return bytes;
}

}  // namespace berth::internal::cli

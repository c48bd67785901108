// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/limited.h"
#include "berth/observe/snapshot_file.h"

// A snapshot that a command reads, and how much memory may be made of its file.
namespace berth::internal::cli {

struct SavedSnapshot {
  ProcessSnapshot content;
  std::string path;
  ReadLimits limits;
};

// `max_memory` is what the option of that name says. Throws as read_input and read_snapshot.
SavedSnapshot open_snapshot(const std::string& path, const std::string& max_memory);

std::size_t bytes_of(const ProcessSnapshot& snapshot);

// Returns make(): what a command makes of the snapshot, within its limits.
template <class Make>
auto made_of(const SavedSnapshot& snapshot, Make make) {
  return limited(bytes_of(snapshot.content), snapshot.path, snapshot.limits, std::move(make));
}

}  // namespace berth::internal::cli

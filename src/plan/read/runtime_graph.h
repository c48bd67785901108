// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "berth/plan/graph.h"
#include "plan/read/json_input.h"

namespace berth::internal::plan::read {

inline constexpr std::string_view kStorageIds = "storage_id";
inline constexpr std::int64_t kNoStorage = -1;

// A graph of a runtime, valid, and what the file says of its entries, which are the outputs of all nodes, one after the
// other.
struct RuntimeGraph {
  Graph graph = {};
  std::vector<ValueId> values = {};         // of each entry
  std::vector<std::int64_t> storages = {};  // of each entry, or kNoStorage; empty where the file gives none

  std::int64_t storage(std::size_t entry) const noexcept { return storages.empty() ? kNoStorage : storages[entry]; }
};

// Whether this is a graph of a runtime, and none of ours.
bool says_runtime_graph(const JsonPosition& top);

RuntimeGraph runtime_graph_from_json(const JsonPosition& top);

}  // namespace berth::internal::plan::read

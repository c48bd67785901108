// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/json.h"
#include "berth/plan/graph.h"
#include "plan/read/json_input.h"

namespace berth::internal::plan::read {

// Parses and validates a graph.
Graph graph_from_json(const JsonPosition& object);

// REQUIRES: the graph is valid.
void graph_to_json(const Graph& graph, JsonWriter& json);

// Refuse another kind of file, or another version.
void check_kind(const JsonPosition& at, std::string_view expected);
void check_version(const JsonPosition& at);

inline constexpr int kFormVersion = 1;

}  // namespace berth::internal::plan::read

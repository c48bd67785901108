// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/json.h"
#include "berth/plan/graph.h"
#include "plan/read/json_input.h"

namespace berth::internal::plan::read {

// The graph that the object describes, validated.
Graph graph_from_json(const JsonPlace& object);

// REQUIRES: the graph is valid.
void graph_to_json(const Graph& graph, JsonWriter& json);

// Refuse what another kind of file, or one of another version, says of itself.
void check_kind(const JsonPlace& at, std::string_view expected);
void check_version(const JsonPlace& at);

inline constexpr int kFormVersion = 1;

}  // namespace berth::internal::plan::read

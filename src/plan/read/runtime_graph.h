// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/plan/graph.h"
#include "plan/read/json_input.h"

namespace berth::internal::plan::read {

// Whether this is a graph of a runtime, and none of ours.
bool says_runtime_graph(const JsonPosition& top);

// Parses and validates one.
Graph runtime_graph_from_json(const JsonPosition& top);

}  // namespace berth::internal::plan::read

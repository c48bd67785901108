// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "plan/onnx/model.h"

namespace berth::internal::plan::onnx {

// The name of a node in messages.
std::string describe(const ModelNode& node);

// Called when a node reads `name` before it is written. If a node of this graph writes it later, throws
// ArgumentError: graph_cycle when there is a cycle, undefined_value when the order is merely not topological.
// Returns when no node writes it.
void refuse_order(const ModelGraph& graph, std::string_view name);

}  // namespace berth::internal::plan::onnx

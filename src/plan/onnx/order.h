// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "plan/onnx/model.h"

namespace berth::internal::plan::onnx {

// How a node is called in messages.
std::string describe(const ModelNode& node);

// A node reads `name` before it is written. If a node of this graph writes it later, throws ArgumentError: graph_cycle when nodes wait for
// one another, undefined_value when they only stand in a wrong order. Returns when none writes it.
void refuse_order(const ModelGraph& graph, std::string_view name);

}  // namespace berth::internal::plan::onnx

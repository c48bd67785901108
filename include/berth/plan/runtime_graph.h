// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "berth/base/read_limits.h"
#include "berth/export.h"
#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// The JSON of graph runtimes: what TVM's graph executor runs, and what NNVM and MXNet write. A plan goes back into the
// same file, as the storage of each entry:
//
//     const Graph graph = read_runtime_graph(bytes);
//     const Plan made = plan(graph, {.strategy = "slots"});
//     const std::string planned = with_storage_ids(bytes, made);   // the file again, for the runtime
//
// Of a file these members are used: `nodes` (op, name, inputs, control_deps, func_name and num_outputs of attrs),
// `arg_nodes`, `heads`, `node_row_ptr`, and of `attrs` the lists shape, dltype (or dtype, as MXNet's numbers),
// storage_id, device_index and storage_scope. Others are ignored, and written again as they are.
//
//   - A node with the op "null" is an input or a weight: its entry is external.
//   - An entry takes what the runtime gives it: whole bytes for each element, so that "bool" and "int4" take one. One
//     whose shape has a negative extent (in MXNet's form: no extent, or one of 0), or whose number is no type of MXNet's,
//     is of unknown size, and not planned.
//   - A node whose function is "__nop" runs nothing: its output is its input under another shape.
//   - Nodes run in the order of the file, and control_deps are kept.
//   - Devices are groups: 1 is "cpu:0", 2 is "cuda:0", another number N is "device N". A storage_scope other than
//     "global", such as a texture's, is a device of its own.
//
// Pure functions: safe to call from any thread.
namespace berth {

// Throws as the readers of plan/read_graph.h: FormatError{at}, and ArgumentError(graph_cycle) for a node that reads what
// is written after it.
BERTH_EXPORT Graph read_runtime_graph(std::string_view bytes, std::string_view name = "the graph", const ReadLimits& limits = {});

// The file `bytes` with the storage of a plan: in `storage_id`, entries that share bytes from their start have one
// number. Inputs and weights keep the number that they have in the file, unless it is negative: weights may be linked
// by it. A plan of offsets has these in a further list of attrs, `storage_offset` (-1: outside the arena); the numbers
// alone save less than the offsets, and less than those of a plan of slots.
//
// Throws as read_runtime_graph, and ArgumentError: plan_invalid when the plan has no locations, is of another graph, or
// runs its nodes in another order than the file; limit_exceeded for an offset above 2³¹ - 1, which the runtimes
// cannot read.
BERTH_EXPORT std::string with_storage_ids(std::string_view bytes, const Plan& plan, std::string_view name = "the graph",
                                          const ReadLimits& limits = {});

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "berth/base/json.h"
#include "berth/export.h"
#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// Reads graphs and plans from bytes. Whatever the bytes hold, the answer is a graph that Graph::validate accepts, or an error that says
// where it is wrong: FormatError with the fact "line" or "offset" for text that breaks its format, ArgumentError as of Graph::validate.
// `name` is for messages. ONNX is read by plan/onnx.h.
namespace berth {

// Lines of `id,lower,upper,size`, in any order of columns, with optional columns `alignment` and `offset` (ignored unless `fixed_offsets`:
// then a buffer must lie there). Lives are half open, in steps; the graph has one node for each stretch of steps in which nothing is born and
// nothing dies. These nodes are times and not work: they have side effects, so that none is moved.
BERTH_EXPORT Graph read_lives_csv(std::string_view bytes, std::string_view name = "the lives", bool fixed_offsets = false);

// Lines of `index operator | producer indices | output bytes …`; comments begin with #, and one may name the outputs: `outputs: 3 7`.
// Each node's first output is what others read; further sizes are outputs that nobody reads, and are left out when they are 0.
BERTH_EXPORT Graph read_graph_text(std::string_view bytes, std::string_view name = "the graph");

// Our own form:
//
//     {"berth": "graph", "version": 1, "name": "…", "devices": ["cpu:0"],
//      "values": [{"name": "x", "bytes": 4096, "dtype": "f32", "shape": [32, 32], "device": "cpu:0", "alignment": 64, "external": true,
//                  "dynamic": true, "output": true, "fixed_offset": 0, "preferred_offset": 0}, …],
//      "nodes": [{"name": "n", "op": "Relu", "inputs": ["x", null], "outputs": ["y"], "ignored_inputs": [1],
//                 "inplace": [{"output": 0, "input": 0, "identity": true}],
//                 "views": [{"output": 0, "input": 0, "offset_bytes": 0, "of_input": true}], "side_effects": true}, …]}
//
// All but "berth", "values", "nodes", "inputs" and "outputs" may be left out; a member that is not one of these is refused. In "inputs"
// and "outputs" a value may stand as its index instead of its name, as values without names must; null is one that is left out.
BERTH_EXPORT Graph read_graph_json(std::string_view bytes, std::string_view name = "the graph");
BERTH_EXPORT void write_graph_json(const Graph& graph, JsonWriter& json);  // one object

// A plan with its graph, {"berth": "plan", "version": 1, "graph": {…}, "plan": {…}}: what `berth plan --out` writes. A plan that is read
// has been verified, or is refused with ArgumentError(plan_invalid): a file is never trusted.
BERTH_EXPORT Plan read_plan_json(std::string_view bytes, std::string_view name = "the plan");
BERTH_EXPORT std::string write_plan_json(const Plan& plan);

// Told apart by the first bytes that say something: JSON (a graph, or the graph of a plan), CSV, or graph text.
BERTH_EXPORT Graph read_graph(std::string_view bytes, std::string_view name = "the graph");

}  // namespace berth

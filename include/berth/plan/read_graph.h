// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "berth/base/json.h"
#include "berth/base/read_limits.h"
#include "berth/export.h"
#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// Parsers of graphs and plans. Whatever the bytes are, the result is a graph that Graph::validate accepts, or
// an error with the position: FormatError with the fact "line" or "offset" for text that breaks its format,
// ArgumentError as of Graph::validate; FormatError(limit_exceeded) for what takes more memory than `limits` allow.
// `name` is for messages. ONNX is read by plan/onnx.h, the JSON of TVM's and MXNet's runtimes by
// plan/runtime_graph.h. Pure functions: safe to call from any thread.
namespace berth {

struct LivesOptions {
  bool fixed_offsets = false;  // the column `offset` is a fixed offset; else it is ignored
};

// Lines of `id,lower,upper,size`, in any order of columns, with optional columns `alignment` and `offset`
// (ignored unless `fixed_offsets`: then the buffer is fixed there). Lifetimes are half-open intervals of steps;
// the graph has one node for each interval in which no lifetime begins or ends. These nodes stand for times and
// not for work: they have side effects, so that none is reordered.
BERTH_EXPORT Graph read_lives_csv(std::string_view bytes, std::string_view name = "the lives", const LivesOptions& options = {},
                                  const ReadLimits& limits = {});

// Lines of `index operator | producer indices | output bytes …`; comments begin with #, and one may name the
// outputs: `outputs: 3 7`. Other nodes read a node's first output; further sizes are outputs that no node
// reads, and are left out when they are 0.
BERTH_EXPORT Graph read_graph_text(std::string_view bytes, std::string_view name = "the graph", const ReadLimits& limits = {});

// berth's own format:
//
//     {"berth": "graph", "version": 1, "name": "…", "devices": ["cpu:0"],
//      "values": [{"name": "x", "bytes": 4096, "dtype": "f32", "shape": [32, 32], "device": "cpu:0", "alignment": 64, "external": true,
//                  "dynamic": true, "output": true, "fixed_offset": 0, "preferred_offset": 0}, …],
//      "nodes": [{"name": "n", "op": "Relu", "inputs": ["x", null], "outputs": ["y"], "ignored_inputs": [1],
//                 "inplace": [{"output": 0, "input": 0, "identity": true}],
//                 "views": [{"output": 0, "input": 0, "offset_bytes": 0, "of_input": true}], "side_effects": true}, …]}
//
// All but "berth", "values", "nodes", "inputs" and "outputs" may be left out; an unknown member is refused. In
// "inputs" and "outputs" a value may be given by its index instead of its name, as values without names must;
// null is one that is left out.
BERTH_EXPORT Graph read_graph_json(std::string_view bytes, std::string_view name = "the graph", const ReadLimits& limits = {});

// A plan with its graph, {"berth": "plan", "version": 1, "graph": {…}, "plan": {…}}: what `berth plan --out`
// writes. A file is never trusted: a plan that does not pass the verifier is refused with
// ArgumentError(plan_invalid).
BERTH_EXPORT Plan read_plan_json(std::string_view bytes, std::string_view name = "the plan", const ReadLimits& limits = {});

// Writes that format: to_json(PlanFile{plan}).
struct BERTH_EXPORT PlanFile {
  const Plan& plan;

  void write_json(JsonWriter& json) const;
};

// Detects the format by the first significant bytes: JSON (a graph, the graph of a plan, or that of a runtime), CSV,
// or graph text.
BERTH_EXPORT Graph read_graph(std::string_view bytes, std::string_view name = "the graph", const ReadLimits& limits = {});

}  // namespace berth

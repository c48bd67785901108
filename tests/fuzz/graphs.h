// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "berth/plan/graph.h"
#include "berth/plan/read_graph.h"
#include "fuzz/target.h"

// What holds for every graph that a reader accepts.
namespace berth::testing::fuzz {

inline std::string written(const Graph& graph) {
  JsonWriter json;
  graph.write_json(json);
  return json.take();
}

// It is valid: write_json says so. Written and read again it is the same.
inline void judge(const Graph& graph) {
  const std::string json = written(graph);
  require(written(read_graph_json(json)) == json, "a graph that was read is written and read again the same");
}

}  // namespace berth::testing::fuzz

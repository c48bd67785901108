// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/runtime_graph.h"

#include "fuzz/graphs.h"
#include "fuzz/words.h"

// Graphs of runtimes. Their plan goes back into the file, which is read again as the same graph.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) {
  const Graph graph = read_runtime_graph(bytes);
  judge(graph);
  for (const char* strategy : {"slots_plain", "size_first"}) {
    const Plan made = berth::plan(graph, {.strategy = strategy});
    if (!made.has_locations() || made.peak_bytes() > INT32_MAX) continue;  // offsets beyond are refused
    require(read_runtime_graph(with_storage_ids(bytes, made)) == graph, "a graph whose storage is planned is the same graph");
  }
}

const Registered runtime_graphs(
    {.name = "runtime_graphs",
     .run = run,
     .words = json_words({"\"nodes\"",    "\"arg_nodes\"",  "\"heads\"",        "\"node_row_ptr\"", "\"attrs\"",         "\"op\"",
                          "\"null\"",     "\"tvm_op\"",     "\"name\"",         "\"inputs\"",       "\"func_name\"",     "\"__nop\"",
                          "\"shape\"",    "\"dltype\"",     "\"dtype\"",        "\"storage_id\"",   "\"device_index\"",  "\"list_int\"",
                          "\"list_str\"", "\"list_shape\"", "\"control_deps\"", "\"float32\"",      "\"storage_offset\""})});

}  // namespace
}  // namespace berth::testing::fuzz

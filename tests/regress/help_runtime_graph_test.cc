// SPDX-License-Identifier: Apache-2.0
// What errors of graphs of runtimes say would help is done here, as a user would do it.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

// An input, a weight, a layer, a reshape of it, and what is returned.
const std::string kGood =
    R"({"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
                  {"op": "tvm_op", "name": "dense", "attrs": {"func_name": "f"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
                  {"op": "tvm_op", "name": "flat", "attrs": {"func_name": "__nop"}, "inputs": [[2, 0, 0]]},
                  {"op": "tvm_op", "name": "relu", "attrs": {"func_name": "f"}, "inputs": [[3, 0, 0]], "control_deps": [2]}],
        "arg_nodes": [0, 1], "heads": [[4, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4, 5],
        "attrs": {"shape": ["list_shape", [[8], [8], [4, 2], [8], [8]]], "storage_id": ["list_int", [0, 1, 2, 2, 3]],
                  "dltype": ["list_str", ["float32", "float32", "float32", "float32", "float32"]],
                  "device_index": ["list_int", [1, 1, 1, 1, 1]]}})";

// Reading it with the first `what` replaced.
std::function<void()> reading(const std::string& what = "", const std::string& by = "") {
  std::string text = kGood;
  text.replace(text.find(what), what.size(), by);
  return [text] { (void)read_graph(text); };
}

TEST(HelpFollowed, OfGraphsOfRuntimes) {
  const auto good = reading();
  const char* kOneForEach = "give one for each entry";
  const char* kNotIdle = "let its function be another";
  const char* kInOrder = "give the nodes in the order in which they can run";
  follow({
      {"let them begin at 0 and never fall", reading("[0, 1, 2, 3, 4, 5]", "[1, 1, 2, 3, 4, 5]"), good},
      {"give one for each node, and the end", reading("[0, 1, 2, 3, 4, 5]", "[0, 1, 2, 3, 4]"), good},
      {"give the kind of the list, and the list", reading("[[8], [8], [4, 2], [8], [8]]]", "[[8], [8], [4, 2], [8], [8]], 7]"), good},
      {"write [\"list_int\", [...]]", reading(R"(["list_int", [0, 1, 2, 2, 3]])", R"(["list_int"])"), good},
      {"write \"list_int\"", reading("list_int", "list_str"), good},
      {kOneForEach, reading("[0, 1, 2, 2, 3]", "[0, 1, 2, 2]"), good},
      {kOneForEach, reading("[1, 1, 1, 1, 1]", "[1, 1]"), good},
      {"write float32, int8, bool or another of TVM's types", reading(R"(["float32")", R"(["flat")"), good},
      {"check its shape", reading("[8], [8]]]", "[8], [4611686018427387904, 8]]]"), good},
      {kNotIdle, reading("[[2, 0, 0]]", "[]"), good},
      {kNotIdle, reading("[4, 2]", "[4, 3]"), reading("\"__nop\"", "\"g\"")},
      {kNotIdle, reading("\"inputs\": [[2, 0, 0]]", "\"inputs\": [[2, 0, 0]], \"control_deps\": [2]"), good},
      {"let both agree", reading("\"attrs\": {\"func_name\": \"f\"}", "\"attrs\": {\"func_name\": \"f\", \"num_outputs\": \"2\"}"), good},
      {kInOrder, reading("[[2, 0, 0]]", "[[4, 0, 0]]"), good},
      {kInOrder, reading("[2]}", "[4]}"), good},
      {"give the node, its output, and a version", reading("[[2, 0, 0]]", "[[2, 0, 0, 0]]"), reading("[[2, 0, 0]]", "[[2, 0]]")},
      {"give the node and its output", reading("[[2, 0, 0]]", "[[2]]"), good},
      {"nodes count from 0", reading("[[4, 0, 0]]", "[[5, 0, 0]]"), good},
      {"its outputs are those of node_row_ptr", reading("[[4, 0, 0]]", "[[4, 1, 0]]"), good},
      {"name nodes whose op is null", reading(R"("arg_nodes": [0, 1])", R"("arg_nodes": [0, 2])"), good},
  });
}

// Two branches, whose wide values need not live at once in another order.
const std::string kBranches =
    R"({"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "f", "name": "a", "inputs": [[0, 0]]},
                  {"op": "f", "name": "b", "inputs": [[0, 0]]}, {"op": "f", "name": "c", "inputs": [[1, 0]]},
                  {"op": "f", "name": "d", "inputs": [[2, 0]]}],
        "arg_nodes": [0], "heads": [[3, 0], [4, 0]], "node_row_ptr": [0, 1, 2, 3, 4, 5],
        "attrs": {"shape": ["list_shape", [[8], [800], [800], [8], [8]]], "dtype": ["list_int", [0, 0, 0, 0, 0]]}})";

TEST(HelpFollowed, OfPlansForRuntimes) {
  const auto writing = [](const std::string& file, const PlanOptions& options, const char* name = "") {
    return [&file, options, name] {
      Graph graph = read_runtime_graph(file);
      graph.name = name;
      (void)with_storage_ids(file, plan(graph, options));
    };
  };
  const auto good = writing(kGood, {.strategy = "slots"});
  follow({
      {"give it more capacity", writing(kGood, {.capacity_bytes = 1}), good},
      {"plan what read_runtime_graph returns for this file", writing(kGood, {}, "another"), good},
      {"plan with the order given, and with no edges", writing(kBranches, {.order = "best"}), writing(kBranches, {})},
      {"plan with the strategy slots", writing(kGood, {.strategy = "offsets", .alignment = std::size_t{1} << 33}), good},
  });
}

}  // namespace
}  // namespace berth::testing

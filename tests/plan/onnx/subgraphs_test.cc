// SPDX-License-Identifier: Apache-2.0
#include "cli/samples/sample_models.h"
#include "support/errors.h"
#include "support/onnx_writer.h"

// Subgraphs and functions.
namespace berth::testing {

namespace {

using Names = std::vector<std::string>;

TEST(OnnxSubgraphs, ReadWhatTheyCaptureWhileTheirNodeRuns) {
  const OnnxModel model = read_onnx(sample_branches(), {.bind = {{"N", 4}}});
  EXPECT_EQ(names_of(model, node_of(model, "If").inputs), (Names{"condition", "doubled", "x"}));
  EXPECT_EQ(shape_of(model, "chosen"), "f32 [4, 8]");
  EXPECT_EQ(model.subgraph_values, 3U);
  EXPECT_EQ(find_value(model, "negative"), nullptr);
}

TEST(OnnxSubgraphs, KeepTheShapeThatALoopCarries) {
  const OnnxModel model = read_onnx(sample_loop(), {.bind = {{"N", 4}}});
  EXPECT_EQ(names_of(model, node_of(model, "Loop").inputs), (Names{"turns", "-", "start", "step"}));
  EXPECT_EQ(shape_of(model, "sum of steps"), "f32 [4, 8]");
  EXPECT_EQ(model.subgraph_values, 5U);
}

TEST(OnnxSubgraphs, SayNothingOfALoopWhoseShapeGrows) {
  GraphWriter body;
  body.input("turn", kInt64, {}).input("go", kBool, {}).input("list", kFloat, {""});
  body.node("Identity", {"go"}, {"on"}).node("Concat", {"list", "x"}, {"longer"}, {integer("axis", 0)});
  body.output("on", kBool).output("longer", kFloat);
  GraphWriter graph;
  graph.input("x", kFloat, {3}).input("turns", kInt64, {});
  graph.node("Loop", {"turns", "", "x"}, {"y"}, {subgraph("body", body.graph())}).output("y", kFloat);
  EXPECT_EQ(read_onnx(graph.model(), {.allow_unknown = true}).unknown, Names{"y"});
}

TEST(OnnxSubgraphs, SayNothingOfBranchesThatDiffer) {
  GraphWriter yes;
  yes.node("Concat", {"x", "x"}, {"twice"}, {integer("axis", 0)}).output("twice", kFloat);
  GraphWriter no;
  no.node("Neg", {"x"}, {"once"}).output("once", kFloat);
  GraphWriter graph;
  graph.input("x", kFloat, {3}).input("c", kBool, {});
  graph.node("If", {"c"}, {"y"}, {subgraph("then_branch", yes.graph()), subgraph("else_branch", no.graph())}).output("y", kFloat);
  EXPECT_EQ(read_onnx(graph.model(), {.allow_unknown = true}).unknown, Names{"y"});
}

TEST(OnnxSubgraphs, PutTheSlicesOfAScanTogether) {
  GraphWriter body;
  body.input("sum", kFloat, {4}).input("row", kFloat, {""});
  body.node("Add", {"sum", "row"}, {"next"}).node("Neg", {"next"}, {"made"}).output("next", kFloat).output("made", kFloat);
  GraphWriter graph;
  graph.input("start", kFloat, {4}).input("rows", kFloat, {7, 4});
  graph.node("Scan", {"start", "rows"}, {"last", "all"}, {subgraph("body", body.graph()), integer("num_scan_inputs", 1)});
  const OnnxModel model = read_onnx(graph.output("last", kFloat).output("all", kFloat).model());
  EXPECT_EQ(shape_of(model, "last"), "f32 [4]");
  EXPECT_EQ(shape_of(model, "all"), "f32 [7, 4]");
}

// Through two graphs, into the outermost.
TEST(OnnxSubgraphs, CaptureThroughSeveralGraphs) {
  GraphWriter inner;
  inner.node("Neg", {"a"}, {"innermost"}).output("innermost", kFloat);
  GraphWriter outer;
  outer.node("If", {"c"}, {"middle"}, {subgraph("then_branch", inner.graph()), subgraph("else_branch", inner.graph())});
  outer.output("middle", kFloat);
  GraphWriter graph;
  graph.input("x", kFloat, {2}).input("c", kBool, {}).node("Abs", {"x"}, {"a"});
  graph.node("If", {"c"}, {"y"}, {subgraph("then_branch", outer.graph()), subgraph("else_branch", outer.graph())});
  const OnnxModel model = read_onnx(graph.output("y", kFloat).model());
  EXPECT_EQ(names_of(model, node_of(model, "If").inputs), (Names{"c", "a"}));
  EXPECT_EQ(shape_of(model, "y"), "f32 [2]");
}

TEST(OnnxSubgraphs, MayReturnAValueFromOutside) {
  GraphWriter branch;
  branch.output("a", kFloat);
  GraphWriter graph;
  graph.input("x", kFloat, {2}).input("c", kBool, {}).node("Abs", {"x"}, {"a"});
  graph.node("If", {"c"}, {"y"}, {subgraph("then_branch", branch.graph()), subgraph("else_branch", branch.graph())});
  const OnnxModel model = read_onnx(graph.output("y", kFloat).model());
  EXPECT_EQ(names_of(model, node_of(model, "If").inputs), (Names{"c", "a"}));
}

// The whole node is constant-folded to a weight.
TEST(OnnxSubgraphs, OfConstantsAreConstant) {
  GraphWriter branch;
  branch.node("Neg", {"w"}, {"inside"}).output("inside", kFloat);
  GraphWriter graph;
  graph.input("x", kFloat, {4}).zeros("w", {4}).initializer(tensor("c", kBool, {}, std::string_view("\1", 1)));
  graph.node("If", {"c"}, {"chosen"}, {subgraph("then_branch", branch.graph()), subgraph("else_branch", branch.graph())});
  const OnnxModel model = read_onnx(graph.node("Add", {"x", "chosen"}, {"y"}).output("y", kFloat).model());
  EXPECT_EQ(model.graph.nodes.size(), 1U);
}

TEST(OnnxSubgraphs, RefuseNamesThatShadowAndNamesThatAreNotThere) {
  const auto with = [](const GraphWriter& branch) {
    GraphWriter graph;
    graph.input("x", kFloat, {2}).input("c", kBool, {}).node("Abs", {"x"}, {"a"});
    graph.node("If", {"c"}, {"y"}, {subgraph("then_branch", branch.graph()), subgraph("else_branch", branch.graph())});
    return graph.output("y", kFloat).model();
  };
  GraphWriter shadow;
  shadow.node("Neg", {"x"}, {"a"}).output("a", kFloat);
  EXPECT_ERROR(read_onnx(with(shadow)), ArgumentError, ErrorCode::duplicate_value);
  GraphWriter nowhere;
  nowhere.node("Neg", {"nowhere"}, {"b"}).output("b", kFloat);
  EXPECT_ERROR(read_onnx(with(nowhere)), ArgumentError, ErrorCode::undefined_value);
  GraphWriter early;
  early.node("Neg", {"c2"}, {"b"}).node("Neg", {"x"}, {"c2"}).output("b", kFloat);
  EXPECT_ERROR(read_onnx(with(early)), ArgumentError, ErrorCode::undefined_value);
  GraphWriter circle;
  circle.node("Neg", {"c2"}, {"b"}).node("Neg", {"b"}, {"c2"}).output("b", kFloat);
  EXPECT_ERROR(read_onnx(with(circle)), ArgumentError, ErrorCode::graph_cycle);
}

// ---- Functions.

std::string calling(const std::vector<std::string>& functions, bool shaped) {
  GraphWriter graph;
  graph.input("x", kFloat, {2, 3}).node({.op = "f", .inputs = {"x"}, .outputs = {"y"}, .domain = "own"});
  graph.node("Relu", {"y"}, {"z"}).output("z", kFloat);
  if (shaped) graph.value_info("y", kFloat, {2, 3});
  return model_message(graph.graph(), 17, 8, functions);
}

std::string function_that_calls(std::string_view name, std::string_view callee, std::string_view domain) {
  return function_message("own", name, {"a"}, {"b"},
                          {{.op = std::string(callee), .inputs = {"a"}, .outputs = {"b"}, .domain = std::string(domain)}});
}

TEST(OnnxFunctions, HaveTheShapesThatTheFileGives) {
  const std::vector<std::string> functions = {function_that_calls("f", "Neg", "")};
  EXPECT_EQ(shape_of(read_onnx(calling(functions, true)), "z"), "f32 [2, 3]");
  EXPECT_ERROR(read_onnx(calling(functions, false)), ArgumentError, ErrorCode::unknown_shape);
  EXPECT_EQ(read_onnx(calling(functions, false), {.allow_unknown = true}).unknown, (Names{"y", "z"}));
}

TEST(OnnxFunctions, RefuseToCallThemselves) {
  EXPECT_ERROR(read_onnx(calling({function_that_calls("f", "f", "own")}, true)), ArgumentError, ErrorCode::graph_cycle);
  EXPECT_ERROR(read_onnx(calling({function_that_calls("f", "g", "own"), function_that_calls("g", "f", "own")}, true)), ArgumentError,
               ErrorCode::graph_cycle);
  std::vector<std::string> chain;
  for (int i = 0; i < 2000; ++i) chain.push_back(function_that_calls("f" + std::to_string(i), "f" + std::to_string(i + 1), "own"));
  EXPECT_EQ(read_onnx(calling(chain, true)).graph.nodes.size(), 2U) << "a long chain is no circle";
}

TEST(OnnxFunctions, RefuseToCallThemselvesFromASubgraph) {
  GraphWriter branch;
  branch.node({.op = "f", .inputs = {"a"}, .outputs = {"inside"}, .domain = "own"}).output("inside", kFloat);
  const std::string function = function_message(
      "own", "f", {"a"}, {"b"}, {{.op = "If", .inputs = {"a"}, .outputs = {"b"}, .attributes = {subgraph("then_branch", branch.graph())}}});
  EXPECT_ERROR(read_onnx(calling({function}, true)), ArgumentError, ErrorCode::graph_cycle);
}

}  // namespace
}  // namespace berth::testing

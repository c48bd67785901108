// SPDX-License-Identifier: Apache-2.0
#include "support/errors.h"
#include "support/onnx_writer.h"

// Names, order, subgraphs and functions: how a model's nodes are translated.
namespace berth::testing {
namespace {

using Names = std::vector<std::string>;

GraphWriter with_input() {
  GraphWriter graph;
  graph.input("x", kFloat, {2, 3});
  return graph;
}

// ---- Order and names.

TEST(OnnxGraph, RefusesACycle) {
  GraphWriter graph = with_input();
  graph.node("Add", {"x", "c"}, {"a"}, {}, "first").node("Neg", {"a"}, {"b"}).node("Neg", {"b"}, {"c"}, {}, "last").output("c", kFloat);
  EXPECT_ERROR(read_onnx(graph.model()), ArgumentError, ErrorCode::graph_cycle);
  GraphWriter itself = with_input();
  itself.node("Add", {"x", "a"}, {"a"}).output("a", kFloat);
  EXPECT_ERROR(read_onnx(itself.model()), ArgumentError, ErrorCode::graph_cycle);
  try {
    read_onnx(graph.model());
  } catch (const ArgumentError& error) {
    EXPECT_NE(error.fact("nodes").find("first"), std::string_view::npos) << error.what();
  }
}

TEST(OnnxGraph, RefusesACycleThroughASubgraph) {
  GraphWriter branch;
  branch.node("Neg", {"later"}, {"inside"}).output("inside", kFloat);
  GraphWriter graph = with_input();
  graph.input("c", kBool, {});
  graph.node("If", {"c"}, {"a"}, {subgraph("then_branch", branch.graph())}).node("Neg", {"a"}, {"later"}).output("later", kFloat);
  EXPECT_ERROR(read_onnx(graph.model()), ArgumentError, ErrorCode::graph_cycle);
}

TEST(OnnxGraph, RefusesUseBeforeDefinition) {
  GraphWriter graph = with_input();
  graph.node("Neg", {"a"}, {"b"}).node("Neg", {"x"}, {"a"}).output("b", kFloat);
  EXPECT_ERROR(read_onnx(graph.model()), ArgumentError, ErrorCode::undefined_value);
}

TEST(OnnxGraph, RefusesNamesThatNobodyDefines) {
  GraphWriter input = with_input();
  input.node("Add", {"x", "nowhere"}, {"y"}).output("y", kFloat);
  EXPECT_ERROR(read_onnx(input.model()), ArgumentError, ErrorCode::undefined_value);
  GraphWriter output = with_input();
  output.node("Neg", {"x"}, {"y"}).output("nowhere", kFloat);
  EXPECT_ERROR(read_onnx(output.model()), ArgumentError, ErrorCode::undefined_value);
  try {
    read_onnx(output.model());
  } catch (const ArgumentError& error) {
    EXPECT_EQ(error.fact("value"), "nowhere") << error.what();
  }
}

TEST(OnnxGraph, RefusesNamesThatAreDefinedTwice) {
  GraphWriter outputs = with_input();
  outputs.node("Neg", {"x"}, {"y"}).node("Abs", {"x"}, {"y"}).output("y", kFloat);
  EXPECT_ERROR(read_onnx(outputs.model()), ArgumentError, ErrorCode::duplicate_value);
  GraphWriter one_node_twice = with_input();
  one_node_twice.node("Split", {"x"}, {"y", "y"}).output("y", kFloat);
  EXPECT_ERROR(read_onnx(one_node_twice.model()), ArgumentError, ErrorCode::duplicate_value);
  GraphWriter over_input = with_input();
  over_input.node("Neg", {"x"}, {"x"}).output("x", kFloat);
  EXPECT_ERROR(read_onnx(over_input.model()), ArgumentError, ErrorCode::duplicate_value);
  EXPECT_ERROR(read_onnx(with_input().input("x", kFloat, {1}).output("x", kFloat).model()), ArgumentError, ErrorCode::duplicate_value);
  GraphWriter weights = with_input();
  weights.initializer(int_list("w", {1})).initializer(int_list("w", {2})).output("x", kFloat);
  EXPECT_ERROR(read_onnx(weights.model()), ArgumentError, ErrorCode::duplicate_value);
}

// JSON could not distinguish them.
TEST(OnnxGraph, RefusesNamesThatAreNotUtf8) {
  GraphWriter graph;
  graph.input("x", kFloat, {3}).node("Relu", {"x"}, {"\xff"}).output("\xff", kFloat);
  EXPECT_ERROR(read_onnx(graph.model()), FormatError, ErrorCode::format_error);
}

TEST(OnnxGraph, LeavesOutEmptyNames) {
  GraphWriter graph = with_input();
  graph.node("Clip", {"x", "", ""}, {"y"}).node("Dropout", {"y"}, {"z", ""}).output("z", kFloat);
  const OnnxModel model = read_onnx(graph.model());
  EXPECT_EQ(names_of(model, node_of(model, "Clip").inputs), (Names{"x", "-", "-"}));
  EXPECT_EQ(names_of(model, node_of(model, "Dropout").outputs), (Names{"z", "-"}));
}

// ---- Readers of values.

TEST(OnnxGraph, LeavesOutOutputsThatNobodyReads) {
  GraphWriter graph = with_input();
  graph.node("TopK", {"x", "k"}, {"values", "indices"}).initializer(int_list("k", {2})).output("values", kFloat);
  const OnnxModel model = read_onnx(graph.model());
  EXPECT_EQ(names_of(model, node_of(model, "TopK").outputs), (Names{"values", "-"}));
  EXPECT_EQ(find_value(model, "indices"), nullptr);
}

TEST(OnnxGraph, KeepsAnOutputThatIsAlsoReadInside) {
  GraphWriter graph = with_input();
  graph.node("Neg", {"x"}, {"a"}).node("Abs", {"a"}, {"b"}).output("a", kFloat).output("b", kFloat);
  const OnnxModel model = read_onnx(graph.model());
  EXPECT_TRUE(find_value(model, "a")->output);
  EXPECT_EQ(names_of(model, node_of(model, "Abs").inputs), Names{"a"});
}

TEST(OnnxGraph, TakesAnInputThatIsDirectlyAnOutput) {
  const OnnxModel model = read_onnx(with_input().output("x", kFloat).model());
  EXPECT_TRUE(find_value(model, "x")->output);
  EXPECT_TRUE(find_value(model, "x")->external);
  EXPECT_TRUE(model.graph.nodes.empty());
}

TEST(OnnxGraph, TakesAValueTwiceAsInput) {
  GraphWriter graph = with_input();
  graph.node("Neg", {"x"}, {"a"}).node("Mul", {"a", "a"}, {"b"}).output("b", kFloat);
  const OnnxModel model = read_onnx(graph.model());
  EXPECT_EQ(names_of(model, node_of(model, "Mul").inputs), (Names{"a", "a"}));
  EXPECT_EQ(node_of(model, "Mul").inplace.size(), 2U);
}

// ---- Constants.

TEST(OnnxGraph, TakesInitializersForWeights) {
  GraphWriter graph = with_input();
  graph.input("w", kFloat, {3});  // required before version 4 of the format
  graph.initializer(float_list("w", {1, 2, 3})).initializer(float_list("unused", {1}));
  graph.node("Add", {"x", "w"}, {"y"}).output("y", kFloat);
  const OnnxModel model = read_onnx(graph.model());
  EXPECT_EQ(model.weights, 1U);
  EXPECT_EQ(model.weight_bytes, 12U);
  EXPECT_TRUE(find_value(model, "w")->external);
  EXPECT_EQ(find_value(model, "unused"), nullptr);
}

TEST(OnnxGraph, TakesSparseInitializersForWeights) {
  const auto sparse = [](const std::string& indices) {
    GraphWriter message("");  // any message will do as a container of fields
    message.field(1, float_list("w", {5, 6})).field(2, indices);
    return message.graph().substr(2) + std::string("\x18\x02\x18\x03", 4);
  };
  GraphWriter graph = with_input();
  graph.field(15, sparse(int_list("", {1, 4}))).node("Add", {"x", "w"}, {"y"}).output("y", kFloat);
  const OnnxModel model = read_onnx(graph.model());
  EXPECT_EQ(shape_of(model, "w"), "f32 [2, 3]");
  EXPECT_EQ(model.weights, 1U);
  GraphWriter wrong = with_input();
  wrong.field(15, sparse(int_list("", {1, 4, 5}))).node("Add", {"x", "w"}, {"y"}).output("y", kFloat);
  EXPECT_ERROR(read_onnx(wrong.model()), FormatError, ErrorCode::size_mismatch);
}

TEST(OnnxGraph, TakesWhatIsComputedFromConstantsAloneForWeights) {
  GraphWriter graph = with_input();
  graph.zeros("w", {3, 4}).node("Transpose", {"w"}, {"turned"}).node("Relu", {"turned"}, {"positive"});
  graph.node("Constant", {}, {"c"}, {tensor_value("value", float_list("", {1, 2, 3}))});
  graph.node("Add", {"positive", "c"}, {"weight"}).node("Gemm", {"x", "weight"}, {"y"}, {integer("transB", 1)}).output("y", kFloat);
  const OnnxModel model = read_onnx(graph.model());
  ASSERT_EQ(model.graph.nodes.size(), 1U);
  EXPECT_EQ(names_of(model, model.graph.nodes[0].inputs), (Names{"x", "weight"}));
  EXPECT_EQ(shape_of(model, "weight"), "f32 [4, 3]");
  EXPECT_EQ(model.weights, 1U);
  EXPECT_EQ(model.weight_bytes, 48U);
}

TEST(OnnxGraph, PlansWhatIsRandom) {
  GraphWriter graph = with_input();
  graph.node("RandomNormal", {}, {"noise"}, {integers("shape", {2, 3})}).node("Add", {"x", "noise"}, {"y"}).output("y", kFloat);
  EXPECT_EQ(read_onnx(graph.model()).graph.nodes.size(), 2U);
}

TEST(OnnxGraph, TakesAConstantForAnOutput) {
  GraphWriter graph = with_input();
  graph.zeros("w", {4}).node("Neg", {"x"}, {"y"}).output("y", kFloat).output("w", kFloat);
  const OnnxModel model = read_onnx(graph.model());
  EXPECT_TRUE(find_value(model, "w")->output);
  EXPECT_TRUE(find_value(model, "w")->external);
}

}  // namespace
}  // namespace berth::testing

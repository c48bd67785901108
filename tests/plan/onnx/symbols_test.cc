// SPDX-License-Identifier: Apache-2.0
#include "cli/samples/sample_models.h"
#include "support/errors.h"
#include "support/onnx_writer.h"

// Symbolic and unknown dimensions, and shapes that the model computes itself.
namespace berth::testing {

namespace {

using Names = std::vector<std::string>;

GraphWriter symbolic() {
  GraphWriter graph;
  graph.input("x", kFloat, {"N", "seq", 8}).node("Relu", {"x"}, {"y"}).output("y", kFloat);
  return graph;
}

TEST(OnnxSymbols, AreBoundToSizes) {
  const std::string bytes = symbolic().model();
  EXPECT_EQ(shape_of(read_onnx(bytes, {.bind = {{"N", 2}, {"seq", 128}}}), "y"), "f32 [2, 128, 8]");
  EXPECT_EQ(shape_of(read_onnx(bytes, {.bind = {{"N", 7}, {"seq", 0}}}), "y"), "f32 [7, 0, 8]") << "the same bytes, bound anew";
  EXPECT_EQ(read_onnx(bytes, {.bind = {{"N", 1}, {"seq", 1}}}).symbols, (Names{"N", "seq"}));
}

TEST(OnnxSymbols, AreNamedWhenTheyAreMissing) {
  const std::string bytes = symbolic().model();
  EXPECT_ERROR(read_onnx(bytes), ArgumentError, ErrorCode::unknown_shape);
  try {
    read_onnx(bytes, {.bind = {{"N", 2}}});
    ADD_FAILURE() << "seq has no size";
  } catch (const ArgumentError& error) {
    EXPECT_EQ(error.fact("values"), "'y'");
    EXPECT_NE(error.help().find("'seq'"), std::string::npos) << error.what();
    EXPECT_EQ(error.help().find("'N'"), std::string::npos) << error.what();
  }
  const OnnxModel model = read_onnx(bytes, {.allow_unknown = true});
  EXPECT_EQ(model.unknown, Names{"y"});
  EXPECT_TRUE(find_value(model, "y")->dynamic);
  EXPECT_FALSE(find_value(model, "y")->size_bytes().has_value());
}

TEST(OnnxSymbols, RefuseBindingsThatMakeNoSense) {
  const std::string bytes = symbolic().model();
  EXPECT_ERROR(read_onnx(bytes, {.bind = {{"M", 2}}}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(read_onnx(bytes, {.bind = {{"N", -1}, {"seq", 1}}}), ArgumentError, ErrorCode::binding_conflict);
  EXPECT_ERROR(read_onnx(bytes, {.bind = {{"N", std::int64_t{1} << 62}, {"seq", 1}}}), ArgumentError, ErrorCode::size_overflow);
}

TEST(OnnxSymbols, RefuseTwoSizes) {
  GraphWriter bound;
  bound.input("x", kFloat, {"N", 4}).node("Concat", {"x", "x"}, {"y"}, {integer("axis", 0)}).output("y", kFloat, {"N", 4});
  EXPECT_ERROR(read_onnx(bound.model(), {.bind = {{"N", 3}}}), ArgumentError, ErrorCode::binding_conflict);
  GraphWriter learned;
  learned.input("x", kFloat, {3, 4}).node("Neg", {"x"}, {"y"}).node("Transpose", {"x"}, {"z"});
  learned.output("y", kFloat, {"N", 4}).output("z", kFloat, {"N", 3});
  EXPECT_ERROR(read_onnx(learned.model()), ArgumentError, ErrorCode::binding_conflict);
  try {
    read_onnx(bound.model(), {.bind = {{"N", 3}}});
  } catch (const ArgumentError& error) {
    EXPECT_EQ(error.fact("symbol"), "N");
    EXPECT_EQ(error.fact("value"), "y");
  }
}

TEST(OnnxSymbols, AreLearntFromShapesThatFollow) {
  GraphWriter graph;
  graph.input("x", kFloat, {3, 4}).node("Neg", {"x"}, {"y"}).value_info("y", kFloat, {"rows", 4});
  graph.node("Mystery", {"y"}, {"z"}).value_info("z", kFloat, {"rows", 2}).output("z", kFloat);
  EXPECT_EQ(shape_of(read_onnx(graph.model()), "z"), "f32 [3, 2]");
}

// Some exporters use this name for every unknown dimension.
TEST(OnnxSymbols, AreNotNamesThatStandForAnything) {
  GraphWriter graph;
  graph.input("x", kFloat, {3, 4}).node("Neg", {"x"}, {"y"}).output("y", kFloat, {"None", "None"}).input("unused", kFloat, {"?"});
  const OnnxModel model = read_onnx(graph.model());
  EXPECT_EQ(shape_of(model, "y"), "f32 [3, 4]");
  EXPECT_TRUE(model.symbols.empty());
}

// ---- Shapes that the file states.

TEST(OnnxShapes, ComeFromTheFileWhereNoRuleKnowsThem) {
  GraphWriter graph;
  graph.input("x", kFloat, {3}).node("Mystery", {"x"}, {"y"}).value_info("y", kFloat16, {"N", 5}).output("y", kFloat16);
  EXPECT_EQ(shape_of(read_onnx(graph.model(), {.bind = {{"N", 2}}}), "y"), "f16 [2, 5]");
}

TEST(OnnxShapes, AreRefusedWhereTheFileContradictsTheRules) {
  for (const WrittenShape& shape : {WrittenShape{3, 5}, WrittenShape{3}, WrittenShape{3, 4, 1}}) {
    GraphWriter graph;
    graph.input("x", kFloat, {3, 4}).node("Neg", {"x"}, {"y"}).output("y", kFloat, shape);
    EXPECT_ERROR(read_onnx(graph.model()), ArgumentError, ErrorCode::size_mismatch);
  }
  GraphWriter elements;
  elements.input("x", kFloat, {3, 4}).node("Neg", {"x"}, {"y"}).output("y", kInt64, {3, 4});
  EXPECT_ERROR(read_onnx(elements.model()), ArgumentError, ErrorCode::size_mismatch);
}

TEST(OnnxShapes, AreNeverTakenForNothing) {
  const auto with = [](const WrittenShape& shape) {
    GraphWriter graph;
    graph.input("x", kFloat, {3}).node("Mystery", {"x"}, {"y"}).output("y", kFloat, shape);
    return graph.model();
  };
  EXPECT_ERROR(read_onnx(with({-1, 4})), ArgumentError, ErrorCode::unknown_shape);
  EXPECT_ERROR(read_onnx(with({INT64_MIN, 4})), ArgumentError, ErrorCode::unknown_shape);
  EXPECT_ERROR(read_onnx(with({std::int64_t{1} << 62})), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(read_onnx(with({"", 4})), ArgumentError, ErrorCode::unknown_shape);
  GraphWriter no_rank;
  no_rank.input("x", kFloat, {3}).node("Mystery", {"x"}, {"y"}).output("y", kFloat);
  EXPECT_ERROR(read_onnx(no_rank.model()), ArgumentError, ErrorCode::unknown_shape);
  EXPECT_EQ(shape_of(read_onnx(with({0, 4})), "y"), "f32 [0, 4]") << "no elements are a size like any other";
}

TEST(OnnxShapes, OfElementsWithoutASizeAreUnknown) {
  GraphWriter words_in;
  words_in.input("x", kString, {3}).node("Identity", {"x"}, {"y"}).output("y", kString);
  EXPECT_ERROR(read_onnx(words_in.model()), ArgumentError, ErrorCode::unknown_shape);
  EXPECT_EQ(read_onnx(words_in.model(), {.allow_unknown = true}).unknown, Names{"y"});
  GraphWriter small;
  small.input("x", 21, {3, 3}).node("Identity", {"x"}, {"y"}).output("y", 21);
  EXPECT_EQ(shape_of(read_onnx(small.model()), "y"), "5 bytes [3, 3]");
}

// ---- Shapes computed in the model, as exporters write them.

TEST(OnnxShapes, FollowThroughComputationsWithShapes) {
  GraphWriter graph;
  graph.input("x", kFloat, {"N", 6, 5, 4});
  for (const int i : {0, 1, 2, 3}) {
    const std::string n = std::to_string(i);
    graph.initializer(int_scalar("at" + n, i)).node("Shape", {"x"}, {"s" + n}).node("Gather", {"s" + n, "at" + n}, {"d" + n});
  }
  graph.initializer(int_list("zero", {0})).initializer(int_scalar("two", 2));
  graph.node("Div", {"d1", "two"}, {"half"}).node("Mul", {"d2", "d3"}, {"area"});
  for (const char* const name : {"d0", "two", "half", "area"}) graph.node("Unsqueeze", {name, "zero"}, {std::string(name) + "u"});
  graph.node("Concat", {"d0u", "twou", "halfu", "areau"}, {"shape"}, {integer("axis", 0)});
  graph.node("Reshape", {"x", "shape"}, {"y"}).output("y", kFloat);
  EXPECT_EQ(shape_of(read_onnx(graph.model(), {.bind = {{"N", 7}}}), "y"), "f32 [7, 2, 3, 20]");
}

TEST(OnnxShapes, FollowThroughSlicesCastsAndScales) {
  GraphWriter graph;
  graph.input("x", kFloat, {1, 3, 7, 9}).node("Shape", {"x"}, {"s"});
  graph.initializer(int_list("from", {2})).initializer(int_list("to", {INT64_MAX})).initializer(int_list("front", {0}));
  graph.initializer(float_list("scale", {2, 1.5}));
  graph.node("Slice", {"s", "from", "to", "front"}, {"sizes"}).node("Slice", {"s", "front", "from", "front"}, {"others"});
  graph.node("Cast", {"sizes"}, {"f"}, {integer("to", kFloat)})
      .node("Mul", {"f", "scale"}, {"scaled"})
      .node("Floor", {"scaled"}, {"whole"});
  graph.node("Cast", {"whole"}, {"new"}, {integer("to", kInt64)}).node("Concat", {"others", "new"}, {"all"}, {integer("axis", 0)});
  graph.node("Resize", {"x", "", "", "all"}, {"y"}).output("y", kFloat);
  EXPECT_EQ(shape_of(read_onnx(graph.model()), "y"), "f32 [1, 3, 14, 13]");
}

// As exporters expand: where the requested size is -1, the input's is kept.
TEST(OnnxShapes, FollowThroughComparisonsAndChoices) {
  GraphWriter graph;
  graph.input("x", kFloat, {5, 1}).initializer(int_list("asked", {-1, 4})).initializer(int_list("minus", {-1}));
  graph.initializer(int_list("two", {2}));
  graph.node("ConstantOfShape", {"two"}, {"ones"}, {tensor_value("value", int_list("", {1}))});
  graph.node("Mul", {"ones", "minus"}, {"minuses"}).node("Equal", {"asked", "minuses"}, {"same"});
  graph.node("Where", {"same", "ones", "asked"}, {"shape"}).node("Expand", {"x", "shape"}, {"y"}).output("y", kFloat);
  EXPECT_EQ(shape_of(read_onnx(graph.model()), "y"), "f32 [5, 4]");
}

TEST(OnnxShapes, FollowThroughReductionsSplitsAndRanges) {
  GraphWriter graph;
  graph.input("x", kFloat, {4, 6}).node("Shape", {"x"}, {"s"}).node("Split", {"s"}, {"rows", "columns"}, {integer("axis", 0)});
  graph.node("ReduceProd", {"s"}, {"count"}, {integer("keepdims", 0)}).node("Squeeze", {"rows"}, {"row"});
  graph.initializer(int_scalar("zero", 0)).initializer(int_scalar("one", 1));
  graph.node("Range", {"zero", "count", "one"}, {"numbers"}).node("Range", {"zero", "row", "one"}, {"indices"});
  graph.node("Gather", {"x", "indices"}, {"y"}).node("Sub", {"count", "row"}, {"rest"});
  graph.node("Range", {"zero", "rest", "one"}, {"others"}).output("numbers", kInt64).output("y", kFloat).output("others", kInt64);
  const OnnxModel model = read_onnx(graph.model());
  EXPECT_EQ(shape_of(model, "numbers"), "i64 [24]");
  EXPECT_EQ(shape_of(model, "y"), "f32 [4, 6]");
  EXPECT_EQ(shape_of(model, "others"), "i64 [20]");
}

// A result that would overflow, or a division by zero, is unknown; nothing wraps.
TEST(OnnxShapes, DoNotFollowThroughOverflow) {
  for (const char* const op : {"Add", "Mul", "Div", "Mod"}) {
    GraphWriter graph;
    const bool divides = op[0] == 'D' || op[1] == 'o';
    graph.input("x", kFloat, {1}).initializer(int_list("a", {INT64_MAX})).initializer(int_list("b", {divides ? 0 : INT64_MAX}));
    graph.node(op, {"a", "b"}, {"shape"}).node("Expand", {"x", "shape"}, {"y"}).output("y", kFloat);
    EXPECT_EQ(read_onnx(graph.model(), {.allow_unknown = true}).unknown, Names{"y"}) << op;
  }
}

}  // namespace
}  // namespace berth::testing

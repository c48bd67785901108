// SPDX-License-Identifier: Apache-2.0
#include "support/onnx_writer.h"

// Which operators may reuse the bytes of their inputs.
namespace berth::testing {

namespace {

// The node under test between two others that give its inputs bytes of their own, because the bytes of graph
// inputs must not be reused.
OnnxModel between(std::string_view op, const std::vector<TestInput>& inputs, std::vector<std::string> attributes = {},
                  std::size_t outputs = 1, std::int64_t opset = 21) {
  GraphWriter graph;
  std::vector<std::string> in;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "i" + std::to_string(i);
    in.push_back(name);
    if (inputs[i].kind == TestInput::Kind::constant) {
      graph.initializer(inputs[i].tensor + "\x42\x02" + name);
      continue;
    }
    graph.input("x" + name, inputs[i].elem, inputs[i].shape).value_info(name, inputs[i].elem, inputs[i].shape);
    graph.node("Make", {"x" + name}, {name});
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    out.push_back("o" + std::to_string(i));
    graph.output(out.back(), 0);
  }
  graph.node(op, in, out, std::move(attributes));
  return read_onnx(graph.model(opset), {.allow_unknown = true});
}

// "0<1" for output 0 in place of input 1; "=" for identity; "0[8]<0" for a view of the input at byte 8;
// "0[8]>1" of the output.
std::string options(const OnnxModel& model, std::string_view op) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : " ") + text; };
  for (const InplaceOption& option : node_of(model, op).inplace)
    add(std::to_string(option.output) + (option.identity ? "=" : "<") + std::to_string(option.input));
  for (const ViewOption& view : node_of(model, op).views)
    add(std::to_string(view.output) + "[" + std::to_string(view.offset_bytes) + (view.of_input ? "]<" : "]>") + std::to_string(view.input));
  return out;
}

TEST(OnnxReuse, ElementwiseOperatorsMayWriteOverTheirInput) {
  for (const char* const op : {"Relu", "Clip", "Sigmoid", "Tanh", "Erf", "Gelu", "HardSwish", "LeakyRelu", "Neg", "Exp", "Sqrt"})
    EXPECT_EQ(options(between(op, {f32({2, 3})}), op), "0<0") << op;
}

TEST(OnnxReuse, OfTwoOperandsOnlyTheOneOfTheSameShape) {
  EXPECT_EQ(options(between("Add", {f32({2, 3}), f32({2, 3})}), "Add"), "0<0 0<1");
  EXPECT_EQ(options(between("Add", {f32({2, 3}), f32({3})}), "Add"), "0<0");
  EXPECT_EQ(options(between("Mul", {f32({1, 3}), f32({2, 3})}), "Mul"), "0<1");
  EXPECT_EQ(options(between("Sub", {f32({2, 1}), f32({1, 3})}), "Sub"), "");
  EXPECT_EQ(options(between("Where", {typed(kBool, {2, 3}), f32({2, 3}), f32({})}), "Where"), "0<1");
  EXPECT_EQ(options(between("Sum", {f32({2, 3}), f32({2, 3}), f32({2, 3})}), "Sum"), "0<0");
}

TEST(OnnxReuse, OnlyElementsOfTheSameWidth) {
  EXPECT_EQ(options(between("Less", {f32({2, 3}), f32({2, 3})}), "Less"), "");
  EXPECT_EQ(options(between("Cast", {f32({2, 3})}, {integer("to", kInt32)}), "Cast"), "0<0");
  EXPECT_EQ(options(between("Cast", {f32({2, 3})}, {integer("to", kFloat16)}), "Cast"), "");
  EXPECT_EQ(options(between("And", {typed(kBool, {4}), typed(kBool, {4})}), "And"), "0<0 0<1");
}

TEST(OnnxReuse, ReshapesHandTheirInputOn) {
  EXPECT_EQ(options(between("Identity", {f32({2, 3})}), "Identity"), "0=0");
  EXPECT_EQ(options(between("Reshape", {f32({2, 3}), i64({3, 2})}), "Reshape"), "0=0");
  EXPECT_EQ(options(between("Flatten", {f32({2, 3, 4})}), "Flatten"), "0=0");
  EXPECT_EQ(options(between("Squeeze", {f32({1, 3}), i64({0})}), "Squeeze"), "0=0");
  EXPECT_EQ(options(between("Unsqueeze", {f32({3}), i64({0})}), "Unsqueeze"), "0=0");
}

TEST(OnnxReuse, DropoutAndBatchNormalizationShareOnlyWhenTheyDoNotTrain) {
  const TestInput c = f32({3});
  EXPECT_EQ(options(between("Dropout", {f32({2, 3})}), "Dropout"), "0=0");
  EXPECT_EQ(options(between("Dropout", {f32({2, 3}), f32({}), typed(kBool, {})}), "Dropout"), "");
  EXPECT_EQ(options(between("Dropout", {f32({2, 3})}, {}, 1, 6), "Dropout"), "");
  EXPECT_EQ(options(between("Dropout", {f32({2, 3})}, {integer("is_test", 1)}, 1, 6), "Dropout"), "0=0");
  EXPECT_EQ(options(between("BatchNormalization", {f32({2, 3, 4}), c, c, c, c}), "BatchNormalization"), "0<0");
  EXPECT_EQ(options(between("BatchNormalization", {f32({2, 3, 4}), c, c, c, c}, {integer("training_mode", 1)}, 3), "BatchNormalization"),
            "");
}

TEST(OnnxReuse, OperatorsThatLookAtManyElementsShareNothing) {
  EXPECT_EQ(options(between("Softmax", {f32({2, 3})}), "Softmax"), "");
  EXPECT_EQ(options(between("MatMul", {f32({3, 3}), f32({3, 3})}), "MatMul"), "");
  EXPECT_EQ(options(between("Transpose", {f32({3, 3})}), "Transpose"), "");
  EXPECT_EQ(options(between("LayerNormalization", {f32({2, 3}), f32({3})}), "LayerNormalization"), "");
  EXPECT_EQ(options(between("Conv", {f32({1, 1, 4, 4}), f32({1, 1, 1, 1})}), "Conv"), "");
  EXPECT_EQ(options(between("CumSum", {f32({2, 3}), i64({0})}), "CumSum"), "");
}

TEST(OnnxReuse, PartsOfASplitAreRangesWhereTheyLieTogether) {
  EXPECT_EQ(options(between("Split", {f32({6, 4})}, {integer("num_outputs", 3)}, 3), "Split"), "0[0]<0 1[32]<0 2[64]<0");
  EXPECT_EQ(options(between("Split", {f32({1, 6}), i64({2, 4})}, {integer("axis", 1)}, 2), "Split"), "0[0]<0 1[8]<0");
  EXPECT_EQ(options(between("Split", {f32({2, 6}), i64({2, 4})}, {integer("axis", 1)}, 2), "Split"), "");
}

TEST(OnnxReuse, SlicesAreRangesWhereTheyLieTogether) {
  const auto sliced = [](WrittenShape shape, std::vector<std::int64_t> from, std::vector<std::int64_t> to,
                         std::vector<std::int64_t> steps) {
    std::vector<std::int64_t> axes;
    for (std::size_t i = 0; i < from.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    return options(between("Slice", {f32(std::move(shape)), i64(from), i64(to), i64(axes), i64(steps)}), "Slice");
  };
  EXPECT_EQ(sliced({6, 4}, {2}, {5}, {1}), "0[32]<0");
  EXPECT_EQ(sliced({6, 4}, {-1}, {INT64_MAX}, {1}), "0[80]<0");
  EXPECT_EQ(sliced({6, 4}, {2}, {6}, {2}), "");
  EXPECT_EQ(sliced({6, 4}, {4}, {1}, {-1}), "");
  EXPECT_EQ(sliced({6, 4}, {0, 1}, {6, 3}, {1, 1}), "");
  EXPECT_EQ(sliced({6, 4}, {3, 1}, {4, 3}, {1, 1}), "0[52]<0") << "a stretch of one row";
  EXPECT_EQ(sliced({6, 4}, {0}, {6}, {1}), "0[0]<0");
}

TEST(OnnxReuse, OnePartThatIsGatheredIsARange) {
  EXPECT_EQ(options(between("Gather", {f32({1, 5, 4}), i64_scalar(2)}, {integer("axis", 1)}), "Gather"), "0[32]<0");
  EXPECT_EQ(options(between("Gather", {f32({5, 4}), i64({-1})}), "Gather"), "0[64]<0");
  EXPECT_EQ(options(between("Gather", {f32({2, 5, 4}), i64_scalar(2)}, {integer("axis", 1)}), "Gather"), "");
  EXPECT_EQ(options(between("Gather", {f32({5, 4}), i64({7})}), "Gather"), "") << "outside";
}

TEST(OnnxReuse, JoinedInputsAreRangesOfTheOutput) {
  EXPECT_EQ(options(between("Concat", {f32({2, 4}), f32({3, 4})}, {integer("axis", 0)}), "Concat"), "0[0]>0 0[32]>1");
  EXPECT_EQ(options(between("Concat", {f32({1, 4}), f32({1, 2})}, {integer("axis", 1)}), "Concat"), "0[0]>0 0[16]>1");
  EXPECT_EQ(options(between("Concat", {f32({2, 4}), f32({2, 4})}, {integer("axis", 1)}), "Concat"), "");
}

TEST(OnnxReuse, NothingIsSharedWithWhatLivesElsewhere) {
  GraphWriter graph;
  graph.input("x", kFloat, {2, 3}).zeros("w", {2, 3}).node("Relu", {"x"}, {"a"}).node("Concat", {"a", "w"}, {"b"}, {integer("axis", 0)});
  const OnnxModel model = read_onnx(graph.output("b", kFloat).model());
  EXPECT_EQ(options(model, "Relu"), "");
  EXPECT_EQ(options(model, "Concat"), "0[0]>0");
}

TEST(OnnxReuse, AnInputOfWhichOnlyTheShapeCountsIsNotRead) {
  EXPECT_EQ(node_of(between("Shape", {f32({2, 3})}), "Shape").ignored_inputs, std::vector<std::uint32_t>{0});
  EXPECT_EQ(node_of(between("CastLike", {f32({2, 3}), typed(kFloat16, {1})}), "CastLike").ignored_inputs, std::vector<std::uint32_t>{1});
  EXPECT_TRUE(node_of(between("Relu", {f32({2, 3})}), "Relu").ignored_inputs.empty());
}

// An operator of the same name in another domain is another operator.
TEST(OnnxReuse, IsForStandardOperatorsAlone) {
  GraphWriter graph;
  graph.input("x", kFloat, {2, 3}).node("Neg", {"x"}, {"a"}).value_info("b", kFloat, {2, 3});
  graph.node({.op = "Relu", .inputs = {"a"}, .outputs = {"b"}, .domain = "com.example"}).output("b", kFloat);
  EXPECT_EQ(options(read_onnx(graph.model()), "com.example.Relu"), "");
}

}  // namespace
}  // namespace berth::testing

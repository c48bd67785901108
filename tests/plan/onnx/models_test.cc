// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>

#include "cli/samples/sample_models.h"
#include "support/onnx_writer.h"
#include "support/scale.h"

// Whole models: generated ones, real ones where they are installed, and very large ones.
namespace berth::testing {

namespace {

struct Sweep {
  std::size_t planned = 0;      // values with a size that are written
  std::size_t lower_bound = 0;  // most bytes that are live at one time
};

// A value lives from its node to its last reader, an output to the end.
Sweep sweep(const Graph& graph) {
  const std::size_t nodes = graph.nodes.size();
  std::vector<std::size_t> born(graph.values.size(), nodes);
  std::vector<std::size_t> dies(graph.values.size(), 0);
  for (std::size_t n = 0; n < nodes; ++n) {
    for (const ValueId v : graph.nodes[n].outputs) {
      if (v != kNoValue) born[v] = dies[v] = n;
    }
    for (const ValueId v : graph.nodes[n].inputs) {
      if (v != kNoValue) dies[v] = n;
    }
  }
  Sweep result;
  std::vector<std::size_t> begin(nodes + 1, 0);
  std::vector<std::size_t> end(nodes + 1, 0);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const auto bytes = graph.values[v].size_bytes();
    if (graph.values[v].external || !bytes || born[v] == nodes) continue;
    ++result.planned;
    begin[born[v]] += *bytes;
    end[graph.values[v].output ? nodes : dies[v] + 1] += *bytes;
  }
  std::size_t live = 0;
  for (std::size_t n = 0; n < nodes; ++n) {
    live = live + begin[n] - end[n];
    result.lower_bound = std::max(result.lower_bound, live);
  }
  return result;
}

struct RealModel {
  const char* name;
  std::size_t planned;
  std::size_t lower_bound;
};

class OnnxRealModels : public ::testing::TestWithParam<RealModel> {};

TEST_P(OnnxRealModels, HaveTheValuesAndTheLowerBoundThatOthersFound) {
  const std::string path = std::string("../shared/data/plan/onnx/") + GetParam().name + ".onnx";
  std::ifstream file(path, std::ios::binary);
  if (!file) GTEST_SKIP() << path << " is not there";
  std::stringstream bytes;
  bytes << file.rdbuf();
  const OnnxModel model = read_onnx(bytes.str(), {}, path);
  const Sweep found = sweep(model.graph);
  EXPECT_EQ(found.planned, GetParam().planned);
  EXPECT_EQ(found.lower_bound, GetParam().lower_bound);
  EXPECT_EQ(model.opset, 9);
  EXPECT_GT(model.weights, 50U);
}

INSTANTIATE_TEST_SUITE_P(OfTheOnnxProject, OnnxRealModels,
                         ::testing::Values(RealModel{"resnet50", 176, 9633792}, RealModel{"squeezenet", 66, 6308352},
                                           RealModel{"densenet121", 668, 8429568}, RealModel{"shufflenet", 203, 3110912},
                                           RealModel{"inception_v1", 143, 6422528}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(OnnxSamples, AResidualNetwork) {
  const OnnxModel one = read_onnx(sample_residual_network(), {.bind = {{"N", 1}}});
  const OnnxModel eight = read_onnx(sample_residual_network(), {.bind = {{"N", 8}}});
  EXPECT_EQ(shape_of(one, "probabilities"), "f32 [1, 1000]");
  EXPECT_EQ(shape_of(one, "stage3.1.sum"), "f32 [1, 512, 7, 7]");
  EXPECT_EQ(one.symbols, std::vector<std::string>{"N"});
  EXPECT_EQ(sweep(eight.graph).lower_bound, 8 * sweep(one.graph).lower_bound);
  EXPECT_EQ(one.weight_bytes, eight.weight_bytes);
}

TEST(OnnxSamples, ATransformer) {
  const OnnxModel model = read_onnx(sample_transformer(), {.bind = {{"batch", 2}, {"seq", 128}}});
  EXPECT_EQ(shape_of(model, "states"), "f32 [2, 128, 512]");
  EXPECT_EQ(shape_of(model, "layer5.weights"), "f32 [2, 8, 128, 128]");
  EXPECT_EQ(shape_of(model, "layer0.q.parts"), "f32 [2, 128, 8, 64]") << "its shape is computed in the model";
  EXPECT_EQ(model.symbols, (std::vector<std::string>{"batch", "seq"}));
  EXPECT_TRUE(model.unknown.empty());
}

std::string chain(std::size_t nodes) {
  GraphWriter graph("chain");
  graph.input("v0", kFloat, {4});
  for (std::size_t i = 0; i < nodes; ++i)
    graph.node(i % 2 == 0 ? "Relu" : "Add",
               i % 2 == 0 ? std::vector<std::string>{"v" + std::to_string(i)}
                          : std::vector<std::string>{"v" + std::to_string(i), "v" + std::to_string(i / 2)},
               {"v" + std::to_string(i + 1)});
  graph.output("v" + std::to_string(nodes), kFloat);
  return graph.model();
}

// A reader with quadratic time would not finish here.
TEST(OnnxSize, AMillionNodesAreRead) {
  const auto nodes = static_cast<std::size_t>(scaled(1'000'000, 100'000));
  const OnnxOptions options{.limits = {.memory_bytes = 2_GiB}};  // nodes of 30 bytes are 40 times as large in memory
  EXPECT_EQ(read_onnx(chain(nodes), options).graph.nodes.size(), nodes);
  did(std::to_string(nodes) + " nodes");
}

// One node with very many inputs, and very many nodes that capture the same value.
TEST(OnnxSize, WideNodesAndManyCapturesAreRead) {
  const auto many = static_cast<std::size_t>(scaled(200'000, 20'000));
  GraphWriter wide("wide");
  wide.input("x", kFloat, {4}).input("c", kBool, {});
  GraphWriter branch("branch");
  std::vector<std::string> all;
  for (std::size_t i = 0; i < many; ++i) {
    all.push_back("v" + std::to_string(i));
    wide.node("Neg", {"x"}, {all.back()});
    branch.node("Neg", {all.back()}, {"in" + std::to_string(i)});
  }
  branch.output("in0", kFloat);
  wide.node("Sum", all, {"sum"})
      .node("If", {"c"}, {"y"}, {subgraph("then_branch", branch.graph()), subgraph("else_branch", branch.graph())});
  const OnnxModel model = read_onnx(wide.output("sum", kFloat).output("y", kFloat).model());
  EXPECT_EQ(node_of(model, "If").inputs.size(), many + 1);
  EXPECT_EQ(model.subgraph_values, 2 * many);
}

}  // namespace
}  // namespace berth::testing

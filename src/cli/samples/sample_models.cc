// SPDX-License-Identifier: Apache-2.0
#include "cli/samples/sample_models.h"

#include <vector>

#include "base/text.h"
#include "cli/samples/model_writer.h"

namespace berth::internal::cli::samples {

using namespace plan::onnx;  // names of element types

namespace {

using text::join;

// ---- The residual network. Each function adds one layer and returns the name of its output.

class ResidualWriter {
 public:
  explicit ResidualWriter(const ResidualSample& sizes) : sizes_(sizes), graph_("residual network") {}

  std::string write() {
    graph_.input("pictures", kFloat, {"N", 3, sizes_.picture, sizes_.picture});
    std::string x = relu(conv("pictures", "stem", 3, sizes_.channels, 7, 2));
    x = add("stem.pool", "MaxPool", {x}, {integers("kernel_shape", {3, 3}), integers("strides", {2, 2}), integers("pads", {1, 1, 1, 1})});
    int channels = sizes_.channels;
    for (int stage = 0; stage < sizes_.stages; ++stage) {
      for (int i = 0; i < sizes_.blocks_per_stage; ++i) x = block(x, join("stage", stage, ".", i), channels, stage, i);
      if (stage + 1 < sizes_.stages) channels *= 2;
    }
    return finish(x, channels);
  }

 private:
  std::string add(const std::string& name, std::string_view op, std::vector<std::string> inputs, std::vector<std::string> attributes = {}) {
    graph_.node(op, std::move(inputs), {name}, std::move(attributes), name);
    return name;
  }

  std::string relu(const std::string& x) { return add(x + ".relu", "Relu", {x}); }

  std::string conv(const std::string& x, const std::string& name, int from, int to, int kernel, int stride) {
    const int pad = kernel / 2;
    graph_.zeros(name + ".weight", {to, from, kernel, kernel});
    add(name, "Conv", {x, name + ".weight"},
        {integers("kernel_shape", {kernel, kernel}), integers("strides", {stride, stride}), integers("pads", {pad, pad, pad, pad})});
    std::vector<std::string> inputs = {name};
    for (const char* const part : {".scale", ".bias", ".mean", ".variance"}) {
      graph_.zeros(name + part, {to});
      inputs.push_back(name + part);
    }
    return add(name + ".norm", "BatchNormalization", std::move(inputs));
  }

  std::string block(const std::string& x, const std::string& name, int channels, int stage, int i) {
    const bool narrows = stage > 0 && i == 0;
    const int from = narrows ? channels / 2 : channels;
    const std::string inner = relu(conv(x, name + ".a", from, channels, 3, narrows ? 2 : 1));
    const std::string outer = conv(inner, name + ".b", channels, channels, 3, 1);
    const std::string shortcut = narrows ? conv(x, name + ".shortcut", from, channels, 1, 2) : x;
    return relu(add(name + ".sum", "Add", {outer, shortcut}));
  }

  std::string finish(const std::string& x, int channels) {
    const std::string flat = add("flat", "Flatten", {add("average", "GlobalAveragePool", {x})});
    graph_.zeros("classes.weight", {sizes_.classes, channels});
    graph_.zeros("classes.bias", {sizes_.classes});
    const std::string scores = add("scores", "Gemm", {flat, "classes.weight", "classes.bias"}, {integer("transB", 1)});
    add("probabilities", "Softmax", {scores}, {integer("axis", 1)});
    graph_.output("probabilities", kFloat, {"N", sizes_.classes});
    return graph_.model();
  }

  ResidualSample sizes_;
  GraphWriter graph_;
};

// ---- The transformer.

class TransformerWriter {
 public:
  explicit TransformerWriter(const TransformerSample& sizes) : sizes_(sizes), graph_("transformer") {}

  std::string write() {
    graph_.input("words", kInt64, {"batch", "seq"});
    graph_.initializer(int_list("heads", {sizes_.heads, sizes_.width / sizes_.heads}));
    graph_.initializer(int_list("width", {sizes_.width}));
    graph_.initializer(float_list("scale", {0.125F}));
    graph_.initializer(float_list("root of two", {1.41421356F}));
    graph_.initializer(float_list("one", {1.0F}));
    graph_.initializer(float_list("half", {0.5F}));
    graph_.zeros("table", {sizes_.words, sizes_.width});
    std::string x = add("embedded", "Gather", {"table", "words"});
    add("lengths", "Shape", {"words"});
    add("split shape", "Concat", {"lengths", "heads"}, {integer("axis", 0)});
    add("joined shape", "Concat", {"lengths", "width"}, {integer("axis", 0)});
    for (int i = 0; i < sizes_.layers; ++i) x = layer(x, join("layer", i));
    add("states", "Identity", {norm(x, "last")});
    graph_.output("states", kFloat, {"batch", "seq", sizes_.width});
    return graph_.model();
  }

 private:
  std::string add(const std::string& name, std::string_view op, std::vector<std::string> inputs, std::vector<std::string> attributes = {}) {
    graph_.node(op, std::move(inputs), {name}, std::move(attributes), name);
    return name;
  }

  std::string norm(const std::string& x, const std::string& name) {
    graph_.zeros(name + ".norm.scale", {sizes_.width});
    graph_.zeros(name + ".norm.bias", {sizes_.width});
    return add(name + ".norm", "LayerNormalization", {x, name + ".norm.scale", name + ".norm.bias"}, {integer("axis", -1)});
  }

  std::string linear(const std::string& x, const std::string& name, int from, int to) {
    graph_.zeros(name + ".weight", {from, to});
    graph_.zeros(name + ".bias", {to});
    return add(name + ".biased", "Add", {add(name, "MatMul", {x, name + ".weight"}), name + ".bias"});
  }

  // [batch, seq, width] to [batch, heads, seq, width / heads]
  std::string by_heads(const std::string& x, const std::string& name) {
    const std::string parts = add(name + ".parts", "Reshape", {linear(x, name, sizes_.width, sizes_.width), "split shape"});
    return add(name + ".heads", "Transpose", {parts}, {integers("perm", {0, 2, 1, 3})});
  }

  std::string attention(const std::string& x, const std::string& name) {
    const std::string q = by_heads(x, name + ".q");
    const std::string k = add(name + ".k.turned", "Transpose", {by_heads(x, name + ".k")}, {integers("perm", {0, 1, 3, 2})});
    const std::string v = by_heads(x, name + ".v");
    const std::string scores = add(name + ".scaled", "Mul", {add(name + ".scores", "MatMul", {q, k}), "scale"});
    const std::string mixed = add(name + ".mixed", "MatMul", {add(name + ".weights", "Softmax", {scores}, {integer("axis", -1)}), v});
    const std::string turned = add(name + ".turned", "Transpose", {mixed}, {integers("perm", {0, 2, 1, 3})});
    return linear(add(name + ".joined", "Reshape", {turned, "joined shape"}), name + ".out", sizes_.width, sizes_.width);
  }

  // x * (1 + erf(x / √2)) / 2
  std::string gelu(const std::string& x, const std::string& name) {
    const std::string erf = add(name + ".erf", "Erf", {add(name + ".over", "Div", {x, "root of two"})});
    return add(name + ".half", "Mul", {add(name + ".times", "Mul", {x, add(name + ".plus", "Add", {erf, "one"})}), "half"});
  }

  std::string layer(const std::string& x, const std::string& name) {
    const std::string mixed = add(name + ".first", "Add", {x, attention(norm(x, name + ".before"), name)});
    const std::string wide = linear(norm(mixed, name + ".between"), name + ".wide", sizes_.width, 4 * sizes_.width);
    const std::string narrow = linear(gelu(wide, name + ".gelu"), name + ".narrow", 4 * sizes_.width, sizes_.width);
    return add(name + ".second", "Add", {mixed, narrow});
  }

  TransformerSample sizes_;
  GraphWriter graph_;
};

}  // namespace

std::string sample_residual_network(const ResidualSample& sizes) { return ResidualWriter(sizes).write(); }

std::string sample_transformer(const TransformerSample& sizes) { return TransformerWriter(sizes).write(); }

std::string sample_branches() {
  GraphWriter yes("yes");
  yes.node("Mul", {"doubled", "doubled"}, {"squared"}).output("squared", kFloat, {"N", 8});
  GraphWriter no("no");
  no.node("Neg", {"x"}, {"negative"}).node("Abs", {"negative"}, {"absolute"}).output("absolute", kFloat, {"N", 8});
  GraphWriter graph("branches");
  graph.input("x", kFloat, {"N", 8}).input("condition", kBool, {});
  graph.node("Add", {"x", "x"}, {"doubled"});
  graph.node("If", {"condition"}, {"chosen"}, {subgraph("then_branch", yes.graph()), subgraph("else_branch", no.graph())}, "choose");
  graph.node("Relu", {"chosen"}, {"y"});
  return graph.output("y", kFloat, {"N", 8}).model();
}

std::string sample_loop() {
  GraphWriter body("body");
  body.input("turn", kInt64, {}).input("go", kBool, {}).input("sum", kFloat, {"N", 8});
  body.node("Identity", {"go"}, {"go on"}).node("Add", {"sum", "step"}, {"next"});
  body.output("go on", kBool, {}).output("next", kFloat, {"N", 8});
  GraphWriter graph("loop");
  graph.input("x", kFloat, {"N", 8}).input("turns", kInt64, {});
  graph.node("Exp", {"x"}, {"step"}).node("Neg", {"x"}, {"start"});
  graph.node("Loop", {"turns", "", "start"}, {"sum of steps"}, {subgraph("body", body.graph())}, "repeat");
  graph.node("Relu", {"sum of steps"}, {"y"});
  return graph.output("y", kFloat, {"N", 8}).model();
}

std::string sample_external_data() {
  GraphWriter graph("external data");
  graph.input("x", kFloat, {"N", 16});
  graph.initializer(external_tensor("weight", kFloat, {16, 16}, {{"location", "weights.bin"}, {"offset", "4096"}, {"length", "1024"}}));
  graph.node("MatMul", {"x", "weight"}, {"product"}).node("Relu", {"product"}, {"y"});
  return graph.output("y", kFloat, {"N", 16}).model();
}

}  // namespace berth::internal::cli::samples

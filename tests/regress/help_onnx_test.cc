// SPDX-License-Identifier: Apache-2.0
// What errors of ONNX models say would help is done here, as a user would do it. "Write the model again" is
// followed by the same model as its tool would have written it.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "support/errors.h"
#include "support/everything.h"
#include "support/onnx_writer.h"

namespace berth::testing {
namespace {

std::function<void()> reading_model(const std::string& bytes, OnnxOptions options = {}) {
  return [=] { (void)plan(read_onnx(bytes, options).graph); };
}

std::string relu(const WrittenShape& shape, const WrittenShape& said) {
  GraphWriter graph;
  return graph.input("x", kFloat, shape).node("Relu", {"x"}, {"y"}).output("y", kFloat, said).model();
}

// A model with the weight "w" of four floats.
std::string with_weight(const std::string& tensor_bytes) {
  GraphWriter graph;
  graph.input("x", kFloat, {4}).initializer(tensor_bytes);
  return graph.node("Add", {"x", "w"}, {"y"}).output("y", kFloat).model();
}

const std::string kWhole = with_weight(tensor("w", kFloat, {4}, std::string(16, 'x')));

TEST(HelpFollowed, OfSymbols) {
  const std::string two = relu({"N", "seq"}, {"N", "seq"});
  const std::string none = relu({2, 3}, {2, 3});
  GraphWriter unknown;
  unknown.input("x", kFloat, {2}).node("Mystery", {"x"}, {"y"}).output("y", kFloat);
  GraphWriter inferred;
  inferred.input("x", kFloat, {2}).node("Mystery", {"x"}, {"y"}).output("y", kFloat, {2});
  GraphWriter learned;
  learned.input("x", kFloat, {3, 4}).node("Neg", {"x"}, {"y"}).node("Transpose", {"x"}, {"z"});
  learned.output("y", kFloat, {"N", 4}).output("z", kFloat, {"N", 3});
  GraphWriter agreed;
  agreed.input("x", kFloat, {3, 4}).node("Neg", {"x"}, {"y"}).node("Transpose", {"x"}, {"z"});
  agreed.output("y", kFloat, {"N", 4}).output("z", kFloat, {"M", 3});
  GraphWriter twice;
  twice.input("x", kFloat, {"N", 4}).node("Concat", {"x", "x"}, {"y"}, {integer("axis", 0)}).output("y", kFloat, {"M", 4});
  follow({
      {"bind the symbols 'N', 'seq' (--bind batch=8,…), or allow unknown shapes (--allow-unknown)", reading_model(two),
       [&] {
         reading_model(two, {.bind = {{"N", 2}, {"seq", 8}}})();
         reading_model(two, {.allow_unknown = true})();
       }},
      {"run shape inference over the model and save what it finds, or allow unknown shapes (--allow-unknown), which leaves these values "
       "out of the plan",
       reading_model(unknown.model()),
       [&] {
         reading_model(inferred.model())();
         reading_model(unknown.model(), {.allow_unknown = true})();
       }},
      {"its symbols are 'N', 'seq'", reading_model(two, {.bind = {{"batch", 2}}}), reading_model(two, {.bind = {{"N", 2}, {"seq", 8}}})},
      {"it has none: leave the binding out", reading_model(none, {.bind = {{"batch", 2}}}), reading_model(none)},
      {"bind it to the size it has when it runs", reading_model(two, {.bind = {{"N", -1}, {"seq", 8}}}),
       reading_model(two, {.bind = {{"N", 1}, {"seq", 8}}})},
      {"correct the model's value_info, or leave it out", reading_model(relu({2, 3}, {2, 4})),
       [&] {
         reading_model(relu({2, 3}, {2, 3}))();
         GraphWriter graph;
         reading_model(graph.input("x", kFloat, {2, 3}).node("Relu", {"x"}, {"y"}).output("y", kFloat).model())();
       }},
      {"correct the model: a symbol has one size", reading_model(learned.model()), reading_model(agreed.model())},
      {"bind N to 3, or correct the model", reading_model(relu({3, 4}, {"N", 4}), {.bind = {{"N", 2}}}),
       [&] {
         reading_model(relu({3, 4}, {"N", 4}), {.bind = {{"N", 3}}})();
         reading_model(relu({3, 4}, {3, 4}))();
       }},
      {"check its shape", reading_model(relu({std::int64_t{1} << 62, 8}, {std::int64_t{1} << 62, 8})),
       reading_model(relu({1 << 10, 8}, {1 << 10, 8}))},
  });
}

TEST(HelpFollowed, OfModelsThatAreDamaged) {
  GraphWriter unwritten;
  unwritten.input("x", kFloat, {2}).node("Relu", {"nobody"}, {"y"}).output("y", kFloat);
  GraphWriter odd;
  odd.input("x\xff", kFloat, {2}).node("Relu", {"x\xff"}, {"y"}).output("y", kFloat);
  GraphWriter twice;
  twice.input("x", kFloat, {2}).node("Relu", {"x"}, {"y"}).node("Neg", {"x"}, {"y"}).output("y", kFloat);
  std::string deep;
  for (int i = 0; i < 200; ++i) {
    GraphWriter graph;
    graph.node("If", {"c"}, {"y"}, {subgraph("then_branch", deep)});
    deep = graph.graph();
  }
  const auto whole = reading_model(kWhole);
  follow({
      {"the file is not an ONNX model, or is damaged: write it again with the tool it came from", reading_model("\x01\x02\x03 no model"),
       whole},
      {"no model needs that: the file is damaged, or is malicious", reading_model(model_message(deep, 17, 8)), whole},
      {"the model is damaged: write it again with the tool it came from", reading_model(with_weight(tensor("w", kFloat, {4}, "x"))), whole},
      {"write the model again with the tool it came from", reading_model(unwritten.model()), whole},
      {"give it another name", reading_model(odd.model()), whole},
      {"give each value a name of its own", reading_model(twice.model()), whole},
  });
}

TEST(HelpFollowed, OfFunctionsThatCallThemselves) {
  const auto model = [](const std::string& callee) {
    GraphWriter graph;
    graph.input("x", kFloat, {2}).node({.op = "Mine", .inputs = {"x"}, .outputs = {"y"}, .domain = "d"}).output("y", kFloat, {2});
    const std::string function = function_message(
        "d", "Mine", {"a"}, {"b"}, {{.op = callee, .inputs = {"a"}, .outputs = {"b"}, .domain = callee == "Mine" ? "d" : ""}});
    return model_message(graph.graph(), 17, 8, {function});
  };
  follow({{"break the cycle", reading_model(model("Mine")), reading_model(model("Relu"))}});
}

TEST(HelpFollowed, OfDataBesideTheModel) {
  const auto with_file = [](const std::vector<WrittenEntry>& entries, std::optional<std::uint64_t> size) {
    return reading_model(with_weight(external_tensor("w", kFloat, {4}, entries)),
                         {.external_size = [=](const std::string&) { return size; }});
  };
  const auto whole = with_file({{"location", "w.bin"}, {"offset", "0"}, {"length", "16"}}, 16);
  const std::string outside = with_weight(external_tensor("w", kFloat, {4}, {{"location", "w.bin"}}));
  follow({
      {"it is a whole number of bytes", with_file({{"location", "w.bin"}, {"length", "many"}}, 16), whole},
      {"give it once", with_file({{"location", "w.bin"}, {"location", "v.bin"}}, 16), whole},
      {"write the model again with the tool it came from", with_file({{"location", "w.bin"}, {"length", "12"}}, 16), whole},
      {"put the whole file beside the model", with_file({{"location", "w.bin"}}, {}), whole},
      {"put the whole file beside the model", with_file({{"location", "w.bin"}}, 15), whole},
      {"read the model by its path, or answer OnnxOptions::external_size", reading_model(outside), whole},
  });
}

TEST(HelpFollowed, OfPathsOutOfTheModelsFolder) {
  const auto with_path = [](const std::string& path) {
    return reading_model(with_weight(external_tensor("w", kFloat, {4}, {{"location", path}})),
                         {.external_size = [](const std::string&) { return std::optional<std::uint64_t>(16); }});
  };
  for (const char* path : {"/etc/passwd", "../w.bin", "~/w.bin", "folder/", "a\\b", ""})
    follow({{"keep the data in files beside the model, and name them by a path such as weights/layer1.bin", with_path(path),
             with_path("weights/layer1.bin")}});
}

TEST(HelpFollowed, OfModelsThatContradictThemselves) {
  const auto product = [](const WrittenShape& second) {
    GraphWriter graph;
    graph.input("x", kFloat, {2, 3}).input("w", kFloat, second).node("MatMul", {"x", "w"}, {"y"});
    return graph.output("y", kFloat).model();
  };
  follow({{"correct the model: this node cannot run", reading_model(product({2, 3})), reading_model(product({3, 2}))}});
}

}  // namespace
}  // namespace berth::testing

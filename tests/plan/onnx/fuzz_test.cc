// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "berth/base/error.h"
#include "cli/samples/sample_models.h"
#include "support/onnx_writer.h"
#include "support/scale.h"

// Damaged models: whatever the input, the result is a valid graph or an Error.
namespace berth::testing {

using namespace internal::base;

namespace {

std::string with_every_rule() {
  GraphWriter graph("every rule");
  graph.input("x", kFloat, {1, 4, 6, 6})
      .input("c", kBool, {})
      .initializer(int_list("ints", {1, 2, 3, 4}))
      .initializer(int_scalar("one", 1));
  graph.initializer(float_list("floats", {1, 1, 2, 2})).node("Shape", {"x"}, {"s"});
  std::size_t count = 0;
  for (const std::string_view op : onnx_shape_rules()) {
    const std::vector<std::string> attributes = {integer("axis", 1), integers("axes", {0}), integers("kernel_shape", {2, 2})};
    const std::string name = "v" + std::to_string(count++);
    graph.node(op, {"x", count % 3 == 0 ? "s" : count % 3 == 1 ? "ints" : "x", "one", "s"}, {name, name + "b"}, attributes);
  }
  return graph.output("v0", kFloat).model();
}

// With computations on shapes, where a damaged number has the most effect.
std::string with_computed_shapes() {
  GraphWriter graph("computed shapes");
  graph.input("x", kFloat, {2, 6, 8}).initializer(int_list("from", {0})).initializer(int_list("to", {2})).initializer(int_list("two", {2}));
  graph.node("Shape", {"x"}, {"s"}).node("Slice", {"s", "from", "to"}, {"front"}).node("Mul", {"front", "two"}, {"twice"});
  graph.node("Concat", {"twice", "two"}, {"shape"}, {integer("axis", 0)}).node("Reshape", {"x", "shape"}, {"y"});
  graph.node("Split", {"y"}, {"a", "b"}, {integer("axis", 0)}).node("Pad", {"a", "shape"}, {"p"}).node("Tile", {"b", "shape"}, {"t"});
  graph.node("Slice", {"y", "from", "to"}, {"z"}).node("Gather", {"y", "from"}, {"g"}).node("Expand", {"g", "shape"}, {"e"});
  graph.node("ConstantOfShape", {"shape"}, {"k"}).node("Range", {"from", "to", "two"}, {"r"}).node("Resize", {"x", "", "", "shape"}, {"q"});
  return graph.output("z", kFloat).output("t", kFloat).model();
}

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> all = {
      sample_residual_network({.stages = 1, .blocks_per_stage = 1}),
      sample_transformer({.layers = 1}),
      sample_branches(),
      sample_loop(),
      sample_external_data(),
      with_every_rule(),
      with_computed_shapes(),
  };
  return all;
}

char random_byte(Random& random) {
  constexpr unsigned char kTelling[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x0a, 0x12, 0x3a, 0x13, 0x14};
  return static_cast<char>(random.one_in(2) ? kTelling[random.below(std::size(kTelling))] : static_cast<unsigned char>(random.below(256)));
}

std::string mutate_bytes(Random& random, std::string bytes) {
  const std::uint64_t changes = 1 + random.below(4);
  for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const auto at = static_cast<std::size_t>(random.below(bytes.size()));
    switch (random.below(5)) {
      case 0: bytes.insert(at, 1, random_byte(random)); break;
      case 1: bytes.erase(at, 1 + random.below(3)); break;
      case 2: bytes.insert(at, bytes.substr(random.below(bytes.size()), random.below(40))); break;
      default: bytes[at] = random_byte(random); break;
    }
  }
  return bytes;
}

// Changes one number in place, so that all lengths stay right and the damage reaches the shape rules.
std::string nudge(Random& random, std::string bytes) {
  const std::uint64_t changes = 1 + random.below(3);
  for (std::uint64_t i = 0; i < changes; ++i) {
    char& byte = bytes[random.below(bytes.size())];
    if (static_cast<unsigned char>(byte) < 0x40) byte = static_cast<char>(random.below(0x40));
  }
  return bytes;
}

// Returns whether it was accepted.
bool survives(const std::string& bytes, bool allow_unknown) {
  OnnxOptions options{.allow_unknown = allow_unknown};
  options.external_size = [](const std::string& path) { return path.size() < 16 ? std::optional<std::uint64_t>(5120) : std::nullopt; };
  try {
    const OnnxModel model = read_onnx(bytes, options);
    model.graph.validate();
    return true;
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    EXPECT_TRUE(nlohmann::json::accept(to_json(error))) << "an error about any input is valid JSON";
    return false;
  }
}

template <class Damage>
void fuzz(Damage damage) {
  Random random(seed());
  const std::uint64_t runs = scaled(200'000, 2000);
  std::uint64_t accepted = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::string& original = seeds()[random.below(seeds().size())];
    if (survives(damage(random, original), !random.one_in(4))) ++accepted;
  }
  EXPECT_GT(accepted, 0U) << "damage that nothing survives tests little";
  did(std::to_string(runs) + " models, " + std::to_string(accepted) + " accepted");
}

TEST(OnnxFuzz, DamagedBytesGiveAGraphOrAnError) { fuzz(mutate_bytes); }

TEST(OnnxFuzz, DamagedNumbersGiveAGraphOrAnError) { fuzz(nudge); }

TEST(OnnxFuzz, EveryOriginalIsAccepted) {
  for (const std::string& original : seeds()) EXPECT_TRUE(survives(original, true));
}

TEST(OnnxFuzz, RandomBytesGiveAnError) {
  Random random(seed());
  const std::uint64_t runs = scaled(200'000, 2000);
  for (std::uint64_t i = 0; i < runs; ++i) {
    std::string bytes(static_cast<std::size_t>(random.below(200)), '\0');
    for (char& byte : bytes) byte = random_byte(random);
    survives(bytes, true);
  }
}

}  // namespace
}  // namespace berth::testing

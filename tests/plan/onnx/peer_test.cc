// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "berth/plan/onnx.h"
#include "cli/samples/sample_models.h"
#include "support/process.h"
#include "support/scale.h"

// Our shapes compared with those of onnx.shape_inference, where that is installed.
namespace berth::testing {

using namespace internal::cli::samples;
namespace {

using Bindings = std::map<std::string, std::int64_t, std::less<>>;

// "name 1 3 224 224", a line for each value.
std::map<std::string, std::string> our_shapes(const std::string& bytes, const Bindings& bind) {
  std::map<std::string, std::string> shapes;
  const OnnxModel model = read_onnx(bytes, {.bind = bind, .allow_unknown = true});
  for (const GraphValue& value : model.graph.values) {
    if (!value.shape) continue;
    std::string& text = shapes[value.name];
    for (std::size_t axis = 0; axis < value.shape->rank(); ++axis) text += ' ' + std::to_string((*value.shape)[axis]);
  }
  return shapes;
}

void expect_agreement(const std::string& bytes, const Bindings& bind) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("berth_peer_" + std::to_string(getpid()) + ".onnx");
  std::ofstream(file, std::ios::binary) << bytes;
  const char* const python = std::getenv("BERTH_PYTHON");
  std::string command = std::string(python == nullptr ? "python3" : python) + " tests/plan/onnx/infer_shapes.py " + file.string();
  for (const auto& [symbol, size] : bind) command += ' ' + symbol + '=' + std::to_string(size);
  const Ran ran = run_command(command);
  std::filesystem::remove(file);
  if (ran.exit_code == 77 || ran.exit_code == 127) GTEST_SKIP() << "onnx is not installed: pip install onnx";
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const std::map<std::string, std::string> ours = our_shapes(bytes, bind);
  std::istringstream lines(ran.output);
  std::size_t compared = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const auto found = ours.find(line.substr(0, space));
    if (found == ours.end()) continue;  // a weight that is not planned, or one that only they know
    EXPECT_EQ(found->second, line.substr(space)) << found->first;
    ++compared;
  }
  EXPECT_GT(compared, 20U);
  did(std::to_string(compared) + " shapes compared");
}

TEST(OnnxPeer, AgreesOnAResidualNetwork) { expect_agreement(sample_residual_network(), {{"N", 4}}); }

TEST(OnnxPeer, AgreesOnATransformer) { expect_agreement(sample_transformer({.layers = 2}), {{"batch", 2}, {"seq", 16}}); }

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/process.h"
#include "support/scale.h"

// Mutated real files, which berth and the packages whose formats they are accept or refuse alike, but for what
// docs/files.md explains (tests/file/differential.py).
namespace berth::testing {
namespace {

TEST(Differential, BerthAndThePackagesAgreeOnMutatedFiles) {
  const char* const python = std::getenv("BERTH_PYTHON");
  const Ran ran = run_command(std::string(python == nullptr ? "python3" : python) + " tests/file/differential.py " + BERTH_READER_HELPER +
                              ' ' + std::to_string(scaled(100'000, 500)) + ' ' + std::to_string(seed()));
  if (ran.exit_code == 77 || ran.exit_code == 127) GTEST_SKIP() << "safetensors, numpy and onnx are not installed: see scripts/set-up";
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  did(ran.output.substr(0, ran.output.find('\n')));
}

}  // namespace
}  // namespace berth::testing

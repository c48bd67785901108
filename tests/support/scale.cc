// SPDX-License-Identifier: Apache-2.0
#include "support/scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace berth::testing {

std::uint64_t scaled(std::uint64_t full, std::uint64_t least) {
  const char* const text = std::getenv("BERTH_TEST_SCALE");
  const double scale = text == nullptr ? 1.0 : std::atof(text);
  return std::max(least, static_cast<std::uint64_t>(static_cast<double>(full) * scale));
}

std::uint64_t seed() {
  const char* const text = std::getenv("BERTH_TEST_SEED");
  return text == nullptr ? 20240229 : std::strtoull(text, nullptr, 10);
}

void did(const std::string& what) {
  std::printf("[   did    ] %s\n", what.c_str());
  ::testing::Test::RecordProperty("did", what);
}

}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace berth::testing {

// A path that is removed again.
struct Scratch {
  std::string path = ::testing::TempDir() + "/berth-help-" + std::to_string(getpid());
  ~Scratch() { std::remove(path.c_str()); }
};

}  // namespace berth::testing

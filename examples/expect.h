// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

// The checks of the examples; main returns 0 only if all of them passed.
inline bool g_right = true;

inline void expect(bool right, const char* claim) {
  std::printf("%s  %s\n", right ? "right" : "WRONG", claim);
  g_right = g_right && right;
}

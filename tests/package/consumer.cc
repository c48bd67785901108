// SPDX-License-Identifier: Apache-2.0
#include <berth/berth.h>

#include <cstdio>
#include <vector>

// A program outside the tree: public headers only, and an exception that crosses the boundary of the library.
int main() {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const berth::Storage x = berth::from_data(values, {2, 3}, "sim:0", berth::DType::bf16);
  try {
    x.data<float>();
    return 1;
  } catch (const berth::ArgumentError&) {
  }
  try {
    berth::empty({1LL << 60}, berth::DType::u8, "cpu");
    return 2;
  } catch (const berth::OutOfMemory& error) {
    if (error.report().requested_bytes != 1ULL << 60) return 3;
  }
  std::printf("a stranger's program: %zu elements on %s\n", x.num_elements(), x.device().to_string().c_str());
  return 0;
}

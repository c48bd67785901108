// SPDX-License-Identifier: Apache-2.0
// A plugin that uses berth, as a Python module does: loaded by programs that do not link it.
#include <cstdint>
#include <cstring>
#include <vector>

#include "berth/berth.h"

// Returns 0 when storages, blocks of all kinds and a snapshot work on this thread.
extern "C" __attribute__((visibility("default"))) int use_berth(int number) {
  try {
    const berth::Tag tag("plugin");
    const berth::TagScope scope(tag);
    std::vector<berth::Storage> kept;
    for (int i = 1; i < 200; ++i) {
      berth::Storage made = berth::empty({i, 64}, berth::DType::u8, "cpu");
      std::memset(made.data<std::uint8_t>(), number, made.size_bytes());
      if (i % 3 == 0) kept.push_back(made);
    }
    for (const berth::Storage& one : kept) {
      if (one.data<std::uint8_t>()[one.size_bytes() - 1] != number) return 1;
    }
    const berth::Storage large = berth::zeros({1 << 20}, berth::DType::f32, "cpu").to(berth::DType::bf16);
    return large.size_bytes() == 2 << 20 && berth::default_allocator("cpu")->audit().empty() ? 0 : 1;
  } catch (...) {
    return 1;
  }
}

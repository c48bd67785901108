// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// What packers are given, and what they answer: rectangles with fixed times, to be given heights.
namespace berth::planning {

// Live in steps [begin, end).
struct PackBuffer {
  std::size_t bytes = 0;  // a multiple of the alignment
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::size_t alignment = 1;
  std::optional<std::size_t> fixed = {};
  std::optional<std::size_t> preferred = {};
};

// The offsets of buffers, in their order, and where the highest ends.
struct Packing {
  std::vector<std::size_t> offsets = {};
  std::size_t peak_bytes = 0;
};

}  // namespace berth::planning

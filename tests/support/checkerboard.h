// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "berth/memory/allocator.h"

namespace berth::testing {

// Allocates twice as many blocks as there shall be holes, side by side, calls `made(block, index)` for each, and
// frees every other. Returns those that are left.
template <class Made>
std::vector<Block> checkerboard(Allocator& memory, std::size_t holes, std::size_t bytes, Made made) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 2 * holes; ++i) {
    blocks.push_back(memory.allocate({.bytes = bytes}));
    made(blocks.back(), i);
  }
  std::vector<Block> left;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 2 == 0)
      memory.deallocate(blocks[i]);
    else
      left.push_back(blocks[i]);
  }
  return left;
}
inline std::vector<Block> checkerboard(Allocator& memory, std::size_t holes, std::size_t bytes) {
  return checkerboard(memory, holes, bytes, [](const Block&, std::size_t) {});
}

inline void free_all(Allocator& memory, const std::vector<Block>& blocks) {
  for (const Block& block : blocks) memory.deallocate(block);
}

}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>

// Identifies a block in a trace: its allocator and its serial number.
namespace berth::internal::observe {

struct BlockName {
  std::uint64_t allocator_id;
  std::uint64_t serial;

  friend bool operator==(const BlockName&, const BlockName&) = default;
};

struct BlockNameHash {
  std::size_t operator()(const BlockName& name) const noexcept { return (name.allocator_id * 0x9e3779b97f4a7c15ULL) ^ name.serial; }
};

// Of the memory for a table of blocks: pieces that malloc maps by themselves, from 128 KiB, and little more. The last may
// be empty but for one block.
inline constexpr std::pmr::pool_options kTablePieces{.max_blocks_per_chunk = 4096, .largest_required_pool_block = 64};
inline constexpr std::size_t kTablePieceBytes = kTablePieces.max_blocks_per_chunk * kTablePieces.largest_required_pool_block;

}  // namespace berth::internal::observe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/pack/packer.h"
#include "plan/pack/strategies.h"
#include "plan/reuse.h"

// Plans whose memory comes in pieces: several arenas with capacities, the preferred one first, and chunks no larger than a maximum.
namespace berth::internal::plan {

inline constexpr std::string_view kChunks = "chunks";

inline bool wants_chunks(const PlanOptions& options) { return !options.arenas.empty() || options.max_chunk_bytes != SIZE_MAX; }

struct ChunksTask {
  const std::vector<PackBuffer>& buffers;
  const std::vector<std::size_t>& touches;  // of each buffer: how often it is written and read
  const PlanOptions& options;
  const std::vector<const OffsetStrategy*>& strategies;
  std::size_t devices;
  const Patience& patience;
};

struct ChunksPacking {
  std::vector<PlanChunk> chunks;
  std::vector<std::size_t> offsets;  // of each buffer, in its device's arena
  std::vector<std::size_t> peaks;    // of each device
};

// Gives every buffer a chunk: the first in which there is room, those that are used most for the room they take first; then each chunk is
// packed by itself. Nothing when some buffer finds no room. REQUIRES: no buffer is fixed.
std::optional<ChunksPacking> pack_chunks(const ChunksTask& task);

// Whether some buffer is larger than every chunk can be: then there is no packing.
bool is_past_chunks(const std::vector<PackBuffer>& buffers, const PlanOptions& options);

// What the arenas of a device can hold together.
std::size_t chunks_capacity_bytes(const PlanOptions& options, std::uint32_t device);

}  // namespace berth::internal::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/pack/packer.h"
#include "plan/pack/strategies.h"
#include "plan/reuse.h"

// Plans whose memory is not contiguous: several arenas with capacities, the preferred one first, and chunks of
// a maximum size.
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

// Assigns every buffer to a chunk: by a sweep over time, and, unless there are very many, first fit in the order of use
// for the room that a buffer takes, and others; then each chunk is packed by itself. Nothing when some buffer fits in none. REQUIRES: no buffer is fixed.
std::optional<ChunksPacking> pack_chunks(const ChunksTask& task);

// Whether some buffer is larger than any chunk can be: then there is no packing.
bool is_past_chunks(const std::vector<PackBuffer>& buffers, const PlanOptions& options);

// The total capacity of a device's arenas.
std::size_t chunks_capacity_bytes(const PlanOptions& options, std::uint32_t device);

}  // namespace berth::internal::plan

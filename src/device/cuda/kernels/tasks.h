// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/dtype.h"
#include "berth/base/result.h"
#include "berth/base/shape.h"
#include "device/cuda/kernels/hardware.h"
#include "device/cuda/kernels/launch.h"

// What the kernels and the host code that launches them agree on: plain structs that are passed as kernel
// parameters, how much one block does, and one launch function per kernel family. A task has at most
// kMostElements elements, so that indices have 32 bits; offsets are in bytes and have 64.
namespace berth::internal::device::cuda {

inline constexpr std::uint32_t kThreads = 256;  // per block, in all kernels
inline constexpr std::size_t kMostElements = std::size_t{1} << 30;

// `Bytes` bytes as 32-bit words: 2, 4, 8, or a multiple of 16.
template <int Bytes>
struct Packed {
  std::uint32_t words[(Bytes + 3) / 4];
};

// Division by an invariant divisor, for dividends below 2^31: a multiplication, an addition and a shift.
struct Divider {
  std::uint32_t divisor = 1;
  std::uint32_t factor = 1;
  std::uint32_t shift = 0;

  Divider() = default;
  explicit Divider(std::uint32_t by) noexcept : divisor(by) {
    while (shift < 31 && std::uint32_t{1} << shift < by) ++shift;
    factor = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - by)) / by + 1);
  }

  BERTH_BOTH std::uint32_t quotient(std::uint32_t dividend) const noexcept {
    const auto high = static_cast<std::uint32_t>(std::uint64_t{dividend} * factor >> 32);
    return (high + dividend) >> shift;
  }
};

struct TaskAxis {
  Divider size;
  std::int64_t source_step = 0;  // in bytes
  std::int64_t target_step = 0;
};

struct Offsets {
  std::int64_t source = 0;
  std::int64_t target = 0;
};

// Axes, outermost first.
struct TaskAxes {
  std::uint32_t rank = 0;
  TaskAxis all[kMaxRank];

  // The offsets of the element with this row-major index.
  BERTH_BOTH Offsets at(std::uint32_t index) const noexcept {
    Offsets offsets;
    for (std::uint32_t i = rank; i-- > 0;) {
      const std::uint32_t rest = i == 0 ? 0 : all[i].size.quotient(index);
      const auto along = static_cast<std::int64_t>(index - rest * all[i].size.divisor);
      offsets.source += along * all[i].source_step;
      offsets.target += along * all[i].target_step;
      index = rest;
    }
    return offsets;
  }
};

// Rows that are contiguous on both sides.
struct RowsTask {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  const std::byte* source_begin = nullptr;  // of the readable range
  const std::byte* source_end = nullptr;
  std::uint32_t elements = 0;  // of a row
  std::uint32_t rows = 0;
  Divider tiles = {};  // parts of a row, one per block; set by the launch
  TaskAxes outer;
};

// What a thread of a row kernel does, by the sizes of the elements.
struct RowWork {
  int vector;     // elements of a vector
  int in_flight;  // vectors per thread

  constexpr std::uint32_t block_elements() const noexcept { return kThreads * static_cast<std::uint32_t>(vector * in_flight); }
};
constexpr RowWork row_work(int from_bytes, int to_bytes) noexcept {
  const int larger = from_bytes > to_bytes ? from_bytes : to_bytes;
  // For 8-byte targets only 2, so that the stores of a warp are coalesced.
  const int vector = to_bytes == 8 ? 2 : larger >= 4 ? 4 : 16 / larger;
  const int in_flight = 64 / (vector * from_bytes);
  return {vector, in_flight < 1 ? 1 : in_flight > 8 ? 8 : in_flight};
}

// Two axes: the source is contiguous along one, the target along the other.
struct TilesTask {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  const std::byte* source_begin = nullptr;
  const std::byte* source_end = nullptr;
  std::uint32_t along_source = 0;  // elements of a contiguous run of the source
  std::uint32_t along_target = 0;
  std::int64_t source_step = 0;  // in bytes, from one run of the source to the next
  std::int64_t target_step = 0;
  bool wide_source = false;  // every run is aligned to 16 bytes
  bool wide_target = false;
  std::uint32_t matrices = 0;
  Divider tiles_along_source = {};  // these two are set by the launch
  Divider tiles_along_target = {};
  TaskAxes outer;
};

// The sides of a tile in elements, along the source and along the target.
constexpr std::uint32_t tile_along_source(std::size_t from_bytes) noexcept {
  return from_bytes == 1 ? 128 : from_bytes == 2 ? 64 : static_cast<std::uint32_t>(256 / from_bytes);
}
constexpr std::uint32_t tile_along_target(std::size_t to_bytes) noexcept {
  return to_bytes <= 2 ? 128 : static_cast<std::uint32_t>(256 / to_bytes);
}

// Any copy, element by element.
inline constexpr std::uint32_t kElementsInFlight = 4;  // elements per thread
struct ElementsTask {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  DType from = DType::u8;
  DType to = DType::u8;
  bool aligned = false;  // every element is aligned to its size, on both sides
  std::uint32_t elements = 0;
  TaskAxes axes;
};

// A repeated pattern.
inline constexpr std::uint32_t kFillInFlight = 4;  // vectors per thread
struct FillTask {
  std::byte* target = nullptr;  // a multiple of 16 if there are vectors
  std::uint64_t vectors = 0;
  std::uint32_t before = 0;  // bytes, fewer than 16
  std::uint32_t behind = 0;
  Packed<16> pattern = {};  // rotated to begin at `target`
};

// A batch of byte copies, in parts of kPartBytes, one per block.
inline constexpr std::uint32_t kPartBytes = 16 << 10;
inline constexpr std::size_t kMostPieces = 1150;  // per launch
struct GatherTask {
  std::uint32_t pieces = 0;
  std::uint32_t last_parts[kMostPieces];  // one past the last part of each piece, ascending
  BytePiece list[kMostPieces];
};
static_assert(sizeof(GatherTask) <= 32764);

// REQUIRES: has_rows; elements of the target are aligned to their size.
Status launch_rows(DType from, DType to, const RowsTask& task, StreamHandle stream) noexcept;
// REQUIRES: has_tiles; elements of both sides are aligned to their size.
Status launch_tiles(DType from, DType to, const TilesTask& task, StreamHandle stream) noexcept;
// Elements of 1, 2, 4, 8 or 16 bytes, aligned to their size.
Status launch_moves(std::size_t element_bytes, const ElementsTask& task, StreamHandle stream) noexcept;
Status launch_conversions(const ElementsTask& task, StreamHandle stream) noexcept;

}  // namespace berth::internal::device::cuda

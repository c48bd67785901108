// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/dtype.h"
#include "berth/base/result.h"
#include "berth/base/shape.h"
#include "device/cuda/kernels/hardware.h"
#include "device/cuda/kernels/launch.h"

// The interface between copy_elements.cc and the kernels: plain structs that are passed as kernel parameters,
// and one launch function per kernel family. A task has at most kMostElements elements, so that indices have 32
// bits; offsets are in bytes and have 64.
namespace berth::internal::device::cuda {

inline constexpr std::uint32_t kThreads = 256;  // per block, in all kernels
inline constexpr std::size_t kMostElements = std::size_t{1} << 30;

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

// Any copy, element by element.
struct ElementsTask {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  DType from = DType::u8;
  DType to = DType::u8;
  bool aligned = false;  // every element is aligned to its size, on both sides
  std::uint32_t elements = 0;
  TaskAxes axes;
};

// The dtype pairs with row and tile kernels; equal dtypes stand for all dtypes of their size, and mean a move
// without conversion.
bool has_rows(DType from, DType to) noexcept;
bool has_tiles(DType from, DType to) noexcept;

// REQUIRES: has_rows; elements of the target are aligned to their size.
Status launch_rows(DType from, DType to, const RowsTask& task, StreamHandle stream) noexcept;
// REQUIRES: has_tiles; elements of both sides are aligned to their size.
Status launch_tiles(DType from, DType to, const TilesTask& task, StreamHandle stream) noexcept;
// Elements of 1, 2, 4, 8 or 16 bytes, aligned to their size.
Status launch_moves(std::size_t element_bytes, const ElementsTask& task, StreamHandle stream) noexcept;
Status launch_conversions(const ElementsTask& task, StreamHandle stream) noexcept;

// The parts of load_kernels.
Status load_rows() noexcept;
Status load_tiles() noexcept;
Status load_elements() noexcept;
Status load_fill() noexcept;
Status load_gather() noexcept;

}  // namespace berth::internal::device::cuda

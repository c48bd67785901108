// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "berth/base/dtype.h"
#include "device/cuda/kernels/integer_quads.h"

// The pairs of dtypes with kernels of their own, and the names of those: rows_f32_bf16. Equal dtypes stand for
// all dtypes of their size, and mean a move without conversion.
namespace berth::internal::device::cuda {

// clang-format off
// Expands X(with, dtype) for each dtype of row kernels and of tile kernels, and X(dtype, dtype) for each that is moved.
#define BERTH_CUDA_ROW_DTYPES(X, with)                                                                                      \
  X(with, f32) X(with, f64) X(with, f16) X(with, bf16) X(with, f8e4m3) X(with, f8e5m2) X(with, i8) X(with, u8) X(with, i32) \
  X(with, i64) X(with, boolean)
#define BERTH_CUDA_TILE_DTYPES(X, with) X(with, f32) X(with, f16) X(with, bf16) X(with, f8e4m3) X(with, f8e5m2) X(with, i8)
#define BERTH_CUDA_MOVED_DTYPES(X) X(u8, u8) X(u16, u16) X(u32, u32) X(u64, u64) X(c128, c128)
// clang-format on

// The dtype that stands for all of a size of 1, 2, 4, 8 or 16 bytes.
constexpr DType dtype_of_size(std::size_t bytes) noexcept {
  switch (bytes) {
    case 1: return DType::u8;
    case 2: return DType::u16;
    case 4: return DType::u32;
    case 8: return DType::u64;
    default: return DType::c128;
  }
}
constexpr bool is_moved_dtype(DType dtype) noexcept { return dtype == dtype_of_size(size_bytes(dtype)); }

constexpr bool has_rows(DType from, DType to) noexcept {
  if (from == to) return from == DType::u8;
  const bool both_bytes = (from == DType::i8 || from == DType::u8) && (to == DType::i8 || to == DType::u8);  // keeps the bits
  return has_quads(from) && has_quads(to) && !both_bytes;
}

// Conversions among the quick dtypes of at most 4 bytes, and moves.
constexpr bool has_tiles(DType from, DType to) noexcept {
  if (from == to) return is_moved_dtype(from);
  return is_quick(from) && is_quick(to) && from != DType::f64 && to != DType::f64;
}

}  // namespace berth::internal::device::cuda

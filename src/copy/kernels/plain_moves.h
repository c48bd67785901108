// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#include "copy/kernels/kernels.h"

// Scalar loops that move elements of `Size` bytes: the reference for the SIMD kernels, which also use them for
// tails. The signatures are those of kernels.h. Stateless; any thread.
namespace berth::internal::copy::plain {

template <std::size_t Size>
void gather(const std::byte* source, std::ptrdiff_t step, std::byte* target, std::size_t count) noexcept {
  const std::ptrdiff_t stride = step * static_cast<std::ptrdiff_t>(Size);
  for (std::size_t i = 0; i < count; ++i, source += stride, target += Size) std::memcpy(target, source, Size);
}

template <std::size_t Size>
void scatter(const std::byte* source, std::byte* target, std::ptrdiff_t step, std::size_t count) noexcept {
  const std::ptrdiff_t stride = step * static_cast<std::ptrdiff_t>(Size);
  for (std::size_t i = 0; i < count; ++i, source += Size, target += stride) std::memcpy(target, source, Size);
}

template <std::size_t Size>
void transpose(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns, std::ptrdiff_t target_stride) noexcept {
  for (std::size_t column = 0; column < columns; ++column, target += target_stride) {
    for (std::size_t row = 0; row < rows; ++row) std::memcpy(target + row * Size, source + (row * columns + column) * Size, Size);
  }
}

inline void copy_runs(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride,
                      std::size_t runs, std::size_t bytes, std::ptrdiff_t = 0) noexcept {
  for (; runs > 0; --runs, source += source_stride, target += target_stride) std::memcpy(target, source, bytes);
}

// Ignores the seam: partial lines are written at once.
inline void stream_runs(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride,
                        std::size_t runs, std::size_t bytes, Seam) noexcept {
  copy_runs(source, source_stride, target, target_stride, runs, bytes);
}
inline void flush_stream() noexcept {}

}  // namespace berth::internal::copy::plain

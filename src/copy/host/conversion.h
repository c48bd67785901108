// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "copy/kernels/kernels.h"

// Converts rows of one dtype to another, by the rules of berth/copy/convert.h: with one to three casts from a
// table of kernels, of which each is exact, or the last one rounds, or one rounds to odd before the last one
// rounds; or, where the table lacks a cast, with the reference conversion (lanes.h). Immutable once made; any
// thread.
//
//     i64 → bf16:  i64 → f32 (odd) → bf16
namespace berth::internal::copy {

struct Conversion {
  static constexpr std::size_t kMostCasts = 3;

  DType from = DType::u8;
  DType to = DType::u8;
  std::size_t count = 0;  // number of casts; 0: the bits are copied, or `by_reference`
  bool by_reference = false;
  std::array<ConvertRow, kMostCasts> rows = {};
  std::array<std::size_t, kMostCasts> sizes = {};  // of the elements that each cast writes

  bool is_copy() const noexcept { return count == 0 && !by_reference; }

  // Converts `elements` elements, contiguous on both sides.
  void run(const std::byte* source, std::byte* target, std::size_t elements) const noexcept;
};

Conversion find_conversion(const Kernels& kernels, DType from, DType to) noexcept;

}  // namespace berth::internal::copy

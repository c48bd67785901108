// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "copy/kernels/kernels.h"

// How rows of one dtype become rows of another, by the rules of berth/copy/convert.h: in one to three casts of a table of kernels, each of
// them exact, or rounding once, or rounding to odd before the last one rounds; or, where the table has none, by the reference (lanes.h).
//
//     i64 → bf16:  i64 → f32 (odd) → bf16
namespace berth::internal::copy {

struct Conversion {
  static constexpr std::size_t kMostCasts = 3;

  DType from = DType::u8;
  DType to = DType::u8;
  std::size_t count = 0;  // of casts; 0: the bits are copied, or `by_reference`
  bool by_reference = false;
  std::array<ConvertRow, kMostCasts> rows = {};
  std::array<std::size_t, kMostCasts> sizes = {};  // of the elements that each cast writes

  bool is_copy() const noexcept { return count == 0 && !by_reference; }

  // `elements` of them, which lie together on both sides.
  void run(const std::byte* source, std::byte* target, std::size_t elements) const noexcept;
};

Conversion find_conversion(const Kernels& kernels, DType from, DType to) noexcept;

}  // namespace berth::internal::copy

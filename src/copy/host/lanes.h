// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "berth/base/dtype.h"

// The reference conversion: every element is widened, exactly, into one of four lanes, and narrowed from there
// with one rounding. So there is one load per dtype and one store per lane and dtype, instead of one function
// per pair. Stateless; any thread.
//
//     bool, u8…u64 → u64 ┐
//     i8…i64       → i64 ├→ any dtype
//     f8…f64       → f64 │
//     c64, c128    → c128┘
namespace berth::internal::copy {

enum class Lane : std::uint8_t { u64, i64, f64, c128 };

union LaneValue {
  std::uint64_t u64;
  std::int64_t i64;
  double f64;
  double c128[2];
};

Lane lane_of(DType dtype) noexcept;

// Between `count` elements `step` bytes apart, at any alignment, and a row of lane values.
void load_lanes(DType dtype, const std::byte* source, std::ptrdiff_t step, std::size_t count, LaneValue* lanes) noexcept;
void store_lanes(DType dtype, Lane lane, const LaneValue* lanes, std::byte* target, std::ptrdiff_t step, std::size_t count) noexcept;

}  // namespace berth::internal::copy

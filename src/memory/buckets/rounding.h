// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <optional>

#include "berth/base/checked.h"

// Maps a size to its bucket: powers of two from `least` to `cutoff`, then multiples of the cutoff. If the two
// are equal, all buckets are multiples of that: the rounding of `exact`.
//
//     Rounding{64, 1024}:   1 → 64    100 → 128    1024 → 1024    1025 → 2048    2049 → 3072
namespace berth::internal::memory {

struct Rounding {
  std::size_t least;  // powers of two, least <= cutoff
  std::size_t cutoff;

  // Returns nullopt when no address space is that large.
  constexpr std::optional<std::size_t> round(std::size_t bytes) const noexcept {
    if (bytes <= least) return least;
    if (bytes <= cutoff) return std::bit_ceil(bytes);
    return try_align_up(bytes, cutoff);
  }
};

}  // namespace berth::internal::memory

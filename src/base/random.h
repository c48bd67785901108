// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/namespace.h"

// A small pseudo-random generator (SplitMix64) with the same sequence on every machine. Not thread-safe.
namespace berth::internal::base {

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // A number from 0 to bound - 1. REQUIRES: bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

  // True with probability 1 / `odds`.
  constexpr bool one_in(std::uint64_t odds) noexcept { return below(odds) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace berth::internal::base

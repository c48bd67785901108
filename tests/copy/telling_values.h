// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "berth/base/dtype.h"

// Random elements among which those that conversions get wrong are frequent: near every value of every smaller
// format and near every tie between two, subnormals, NaN with all kinds of payload, infinities, integers near
// powers of two. All others are uniform bits.
namespace berth::testing {

using namespace internal::base;

// The dtypes that have kernels.
inline constexpr std::array kKernelDTypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                                             DType::i8,  DType::u8,  DType::i32, DType::i64,  DType::boolean};

class TellingValues {
 public:
  explicit TellingValues(std::uint64_t seed) : random_(seed) {}

  // `count` contiguous elements.
  void fill(DType dtype, std::byte* target, std::size_t count) {
    const std::size_t size = size_bytes(dtype);
    for (std::size_t i = 0; i < count; ++i, target += size) {
      const std::array<std::uint64_t, 2> bits = {next(dtype), next(dtype)};  // the second for complex dtypes
      if (dtype == DType::c64) {
        std::memcpy(target, &bits[0], 4);
        std::memcpy(target + 4, &bits[1], 4);
      } else {
        std::memcpy(target, bits.data(), size);
      }
    }
  }
  std::vector<std::byte> make(DType dtype, std::size_t count) {
    std::vector<std::byte> made(count * size_bytes(dtype));
    fill(dtype, made.data(), count);
    return made;
  }

 private:
  // Floats that are narrowed: their fields, and the positions of the values of a smaller format.
  struct Fields {
    int exponent_bits;
    int mantissa_bits;
  };
  struct Format {
    int mantissa_bits;
    int least_exponent;  // of its least value
    int most_exponent;
  };
  static constexpr Format kFormats[] = {{3, -9, 8},       // f8e4m3
                                        {2, -16, 15},     // f8e5m2
                                        {10, -24, 15},    // f16
                                        {7, -133, 127},   // bf16
                                        {23, -149, 127},  // f32
                                        {8, -1, 9},       // i8, u8
                                        {32, 15, 34},     // i32
                                        {52, 50, 66}};    // i64

  std::uint64_t next(DType dtype) {
    switch (dtype) {
      case DType::f32:
      case DType::c64: return next_float({8, 23});
      case DType::f64:
      case DType::c128: return next_float({11, 52});
      case DType::u32:
      case DType::i32: return next_integer(32);
      case DType::u64:
      case DType::i64: return next_integer(64);
      default: return random_.next();  // few values, so all of them are frequent
    }
  }

  std::uint64_t next_float(Fields f) {
    const std::uint64_t bits = random_.next();
    switch (random_.below(8)) {
      case 0: return bits >> (63 - f.exponent_bits - f.mantissa_bits);
      case 1: return with_exponent(f, 0, random_.next() >> random_.below(64));
      case 2: return with_exponent(f, (1 << f.exponent_bits) - 1, nan_payload(f));
      default: return near_boundary(f);
    }
  }

  std::uint64_t with_exponent(Fields f, int exponent, std::uint64_t mantissa) {
    const std::uint64_t sign = random_.below(2) << (f.exponent_bits + f.mantissa_bits);
    return sign | static_cast<std::uint64_t>(exponent) << f.mantissa_bits | (mantissa & ((std::uint64_t{1} << f.mantissa_bits) - 1));
  }

  // A payload of 0 makes it infinity; one without the top bit is signalling.
  std::uint64_t nan_payload(Fields f) {
    switch (random_.below(4)) {
      case 0: return 0;
      case 1: return std::uint64_t{1} << random_.below(static_cast<std::uint64_t>(f.mantissa_bits));
      case 2: return random_.next() >> random_.below(64);
      default: return random_.next();
    }
  }

  // A number with few leading bits, which is a value of the format or halfway between two, or a neighbour of it
  // at any distance.
  std::uint64_t near_boundary(Fields f) {
    const Format& format = kFormats[random_.below(std::size(kFormats))];
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    const auto range = static_cast<std::uint64_t>(format.most_exponent - format.least_exponent + 5);
    const int exponent = format.least_exponent - 2 + static_cast<int>(random_.below(range)) + bias;
    const int most = std::min(format.mantissa_bits + 1, f.mantissa_bits);
    const auto kept = static_cast<int>(random_.below(static_cast<std::uint64_t>(most) + 1));
    const std::uint64_t leading = kept == 0 ? 0 : (random_.next() >> (64 - kept)) << (f.mantissa_bits - kept);
    std::uint64_t bits = 0;
    if (exponent > 0) {
      bits = with_exponent(f, std::min(exponent, (1 << f.exponent_bits) - 2), leading);
    } else {
      const std::uint64_t whole = std::uint64_t{1} << f.mantissa_bits | leading;
      bits = with_exponent(f, 0, 1 - exponent < 64 ? whole >> (1 - exponent) : 0);
    }
    const std::uint64_t step = random_.one_in(2) ? 1 : std::uint64_t{1} << random_.below(static_cast<std::uint64_t>(f.mantissa_bits));
    switch (random_.below(3)) {
      case 0: return bits + step;
      case 1: return bits - step;
      default: return bits;
    }
  }

  std::uint64_t next_integer(int bits) {
    const std::uint64_t value = random_.next();
    const auto shift = static_cast<int>(random_.below(static_cast<std::uint64_t>(bits)));
    const std::uint64_t power = std::uint64_t{1} << shift;
    switch (random_.below(5)) {
      case 0: return value;
      case 1: return random_.one_in(2) ? value >> (64 - bits + shift) : ~(value >> (64 - bits + shift));
      case 2: return signed_at_random(power + random_.below(7) - 3);
      default: {  // a few bits below the highest one, and one far below them: ties of floats, and near-ties
        const auto kept = static_cast<int>(random_.below(55));
        const std::uint64_t leading = kept == 0 ? 0 : value >> (64 - kept);
        const std::uint64_t scaled = shift >= kept ? leading << (shift - kept) : leading >> (kept - shift);
        return signed_at_random(power + scaled + random_.below(3) - 1);
      }
    }
  }
  std::uint64_t signed_at_random(std::uint64_t value) { return random_.one_in(2) ? value : 0 - value; }

  Random random_;
};

}  // namespace berth::testing

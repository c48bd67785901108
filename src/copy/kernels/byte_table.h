// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "berth/base/dtype.h"
#include "berth/base/float_types.h"

// Lookup tables for conversions between one-byte elements: 256 results each, computed at compile time, so that
// there is no initialisation that a fork could interrupt. (None for integers to integers, which keep their
// bits.) Constants; any thread.
namespace berth::internal::copy {

constexpr bool is_float8(DType dtype) noexcept { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

template <DType From>
constexpr double value_of_byte(std::uint8_t byte) noexcept {
  if constexpr (From == DType::boolean) return byte != 0 ? 1 : 0;
  if constexpr (From == DType::u8) return byte;
  if constexpr (From == DType::i8) return static_cast<std::int8_t>(byte);
  if constexpr (From == DType::f8e4m3) return static_cast<double>(float8_e4m3::from_bits(byte));
  if constexpr (From == DType::f8e5m2) return static_cast<double>(float8_e5m2::from_bits(byte));
}

// Rounds toward zero and saturates; NaN becomes 0.
template <class Byte>
constexpr std::uint8_t truncated_to_byte(double value) noexcept {
  if (value != value) return 0;  // NaN
  using Limits = std::numeric_limits<Byte>;
  return static_cast<std::uint8_t>(static_cast<Byte>(std::clamp<double>(value, Limits::lowest(), Limits::max())));
}

template <DType To>
constexpr std::uint8_t byte_of_value(double value) noexcept {
  if constexpr (To == DType::u8) return truncated_to_byte<std::uint8_t>(value);
  if constexpr (To == DType::i8) return truncated_to_byte<std::int8_t>(value);
  if constexpr (To == DType::f8e4m3) return float8_e4m3(value).bits;
  if constexpr (To == DType::f8e5m2) return float8_e5m2(value).bits;
}

struct ByteTable {
  alignas(64) std::uint8_t to[256];
};

template <DType From, DType To>
constexpr ByteTable make_byte_table() noexcept {
  static_assert(is_float8(From) || is_float8(To));
  ByteTable made{};
  for (unsigned i = 0; i < 256; ++i) {
    const auto byte = static_cast<std::uint8_t>(i);
    made.to[i] = byte_of_value<To>(value_of_byte<From>(byte));
  }
  return made;
}

template <DType From, DType To>
inline constexpr ByteTable kByteTable = make_byte_table<From, To>();

// The same in halves of eight rows of sixteen, each row but the first as the XOR with the row before it.
constexpr ByteTable steps_of(const ByteTable& table) noexcept {
  ByteTable steps = table;
  for (unsigned i = 0; i < 256; ++i) {
    if (i % 128 >= 16) steps.to[i] ^= table.to[i - 16];
  }
  return steps;
}

template <DType From, DType To>
inline constexpr ByteTable kByteSteps = steps_of(kByteTable<From, To>);

}  // namespace berth::internal::copy

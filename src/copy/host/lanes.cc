// SPDX-License-Identifier: Apache-2.0
#include "copy/host/lanes.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

#include "berth/copy/convert.h"

namespace berth::internal::copy {

namespace {

template <class T>
struct type {
  using element = T;
};

// Calls visit(type<T>) with the C++ type behind a dtype. A stored bool is read and written as its byte.
template <class Visit>
void with_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::boolean: return visit(type<bool>());
    case DType::u8: return visit(type<std::uint8_t>());
    case DType::u16: return visit(type<std::uint16_t>());
    case DType::u32: return visit(type<std::uint32_t>());
    case DType::u64: return visit(type<std::uint64_t>());
    case DType::i8: return visit(type<std::int8_t>());
    case DType::i16: return visit(type<std::int16_t>());
    case DType::i32: return visit(type<std::int32_t>());
    case DType::i64: return visit(type<std::int64_t>());
    case DType::f8e4m3: return visit(type<float8_e4m3>());
    case DType::f8e5m2: return visit(type<float8_e5m2>());
    case DType::f16: return visit(type<float16>());
    case DType::bf16: return visit(type<bfloat16>());
    case DType::f32: return visit(type<float>());
    case DType::f64: return visit(type<double>());
    case DType::c64: return visit(type<std::complex<float>>());
    case DType::c128: return visit(type<std::complex<double>>());
  }
}

template <class T>
constexpr bool is_complex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

// Converts float to double with integer arithmetic, so that a signalling NaN becomes quiet in the same way on
// every machine and at every optimisation level.
double widen(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return small_float<8, 23, true, std::uint32_t>::decode(bits);
}

template <class T>
LaneValue load(const std::byte* source) noexcept {
  if constexpr (std::same_as<T, bool>) {
    return {.u64 = source[0] != std::byte{0}};
  } else {
    T value;
    std::memcpy(&value, source, sizeof value);
    if constexpr (std::unsigned_integral<T>)
      return {.u64 = value};
    else if constexpr (std::signed_integral<T>)
      return {.i64 = value};
    else if constexpr (std::same_as<T, float>)
      return {.f64 = widen(value)};
    else if constexpr (std::same_as<T, std::complex<float>>)
      return {.c128 = {widen(value.real()), widen(value.imag())}};
    else if constexpr (std::same_as<T, std::complex<double>>)
      return {.c128 = {value.real(), value.imag()}};
    else
      return {.f64 = static_cast<double>(value)};
  }
}

// An integer as a double, rounded to odd: the last bit is set if the value is inexact, so that rounding it
// again to fewer bits gives what rounding the integer once would have given.
double to_odd(std::uint64_t magnitude) noexcept {
  const int extra = 64 - std::countl_zero(magnitude) - 53;
  if (extra <= 0) return static_cast<double>(magnitude);
  const bool inexact = (magnitude & ((1ULL << extra) - 1)) != 0;
  return std::ldexp(static_cast<double>((magnitude >> extra) | (inexact ? 1 : 0)), extra);
}

double to_odd(std::int64_t value) noexcept {
  return value < 0 ? -to_odd(0 - static_cast<std::uint64_t>(value)) : to_odd(static_cast<std::uint64_t>(value));
}

template <std::integral T>
T truncate(double value) noexcept {
  if (std::isnan(value)) return 0;
  // The bounds as doubles: -2^(n-1) or 0 exactly, and 2^(n-1) or 2^n, the first value that does not fit.
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::lowest());
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value <= kLow) return std::numeric_limits<T>::lowest();
  if (value >= beyond) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

float narrow(double value) noexcept { return std::bit_cast<float>(small_float<8, 23, true, std::uint32_t>::encode(value)); }

template <class T, Lane From>
T convert(const LaneValue& value) noexcept {
  if constexpr (is_complex<T>) {
    using Part = typename T::value_type;
    const double imaginary = From == Lane::c128 ? value.c128[1] : 0;
    const Part real = convert<Part, From>(value);
    if constexpr (std::same_as<Part, float>)
      return {real, narrow(imaginary)};
    else
      return {real, imaginary};
  } else if constexpr (std::same_as<T, bool>) {
    if constexpr (From == Lane::c128)
      return value.c128[0] != 0 || value.c128[1] != 0;
    else if constexpr (From == Lane::f64)
      return value.f64 != 0;
    else
      return value.u64 != 0;
  } else if constexpr (std::integral<T>) {
    if constexpr (From == Lane::c128)
      return truncate<T>(value.c128[0]);
    else if constexpr (From == Lane::f64)
      return truncate<T>(value.f64);
    else
      return static_cast<T>(value.u64);  // both integer lanes hold the value modulo 2^64
  } else if constexpr (From == Lane::u64 || From == Lane::i64) {
    if constexpr (std::same_as<T, double> && From == Lane::u64)
      return static_cast<double>(value.u64);
    else if constexpr (std::same_as<T, double>)
      return static_cast<double>(value.i64);
    else if constexpr (std::same_as<T, float> && From == Lane::u64)
      return static_cast<float>(value.u64);
    else if constexpr (std::same_as<T, float>)
      return static_cast<float>(value.i64);
    else if constexpr (From == Lane::u64)
      return T(to_odd(value.u64));
    else
      return T(to_odd(value.i64));
  } else {
    const double number = From == Lane::c128 ? value.c128[0] : value.f64;
    if constexpr (std::same_as<T, float>)
      return narrow(number);
    else
      return T(number);
  }
}

template <class T, Lane From>
void store_all(const LaneValue* lanes, std::byte* target, std::ptrdiff_t step, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i, target += step) {
    const T value = convert<T, From>(lanes[i]);
    std::memcpy(target, &value, sizeof value);
  }
}

}  // namespace

Lane lane_of(DType dtype) noexcept {
  switch (info(dtype).kind) {
    case DTypeKind::boolean:
    case DTypeKind::unsigned_integer: return Lane::u64;
    case DTypeKind::signed_integer: return Lane::i64;
    case DTypeKind::floating: return Lane::f64;
    case DTypeKind::complex: break;
  }
  return Lane::c128;
}

void load_lanes(DType dtype, const std::byte* source, std::ptrdiff_t step, std::size_t count, LaneValue* lanes) noexcept {
  with_type(dtype, [&](auto t) {
    for (std::size_t i = 0; i < count; ++i, source += step) lanes[i] = load<typename decltype(t)::element>(source);
  });
}

void store_lanes(DType dtype, Lane lane, const LaneValue* lanes, std::byte* target, std::ptrdiff_t step, std::size_t count) noexcept {
  with_type(dtype, [&](auto t) {
    using T = typename decltype(t)::element;
    switch (lane) {
      case Lane::u64: return store_all<T, Lane::u64>(lanes, target, step, count);
      case Lane::i64: return store_all<T, Lane::i64>(lanes, target, step, count);
      case Lane::f64: return store_all<T, Lane::f64>(lanes, target, step, count);
      case Lane::c128: return store_all<T, Lane::c128>(lanes, target, step, count);
    }
  });
}

}  // namespace berth::internal::copy

namespace berth {

using namespace internal;
using namespace internal::copy;

void convert_element(const void* source, DType source_dtype, void* target, DType target_dtype) noexcept {
  if (source_dtype == target_dtype) {
    std::memmove(target, source, size_bytes(source_dtype));
    return;
  }
  LaneValue lane;
  load_lanes(source_dtype, static_cast<const std::byte*>(source), 0, 1, &lane);
  store_lanes(target_dtype, lane_of(source_dtype), &lane, static_cast<std::byte*>(target), 0, 1);
}

}  // namespace berth

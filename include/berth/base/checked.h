// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "berth/export.h"

// Checked arithmetic: the only way berth computes a size. `try_` functions return an empty optional on
// overflow; the others throw `ArgumentError(size_overflow)` and name what was being computed. Compare ranges by
// subtraction (`fits`), never by adding.
namespace berth {

// The largest byte count berth handles: pointer differences must stay representable.
inline constexpr std::size_t kMaxBytes = PTRDIFF_MAX;

template <std::integral T>
constexpr std::optional<T> try_add(T a, T b) noexcept {
  T sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
constexpr std::optional<T> try_multiply(T a, T b) noexcept {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

constexpr bool is_power_of_two(std::size_t value) noexcept { return value != 0 && (value & (value - 1)) == 0; }

// The least multiple of `alignment` that is at least `value`. REQUIRES: alignment is a power of two.
constexpr std::optional<std::size_t> try_align_up(std::size_t value, std::size_t alignment) noexcept {
  const std::optional<std::size_t> sum = try_add(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

// The greatest multiple of `alignment` that is at most `value`. REQUIRES: alignment is a power of two.
constexpr std::size_t align_down(std::size_t value, std::size_t alignment) noexcept { return value & ~(alignment - 1); }

// Whether [offset, offset + length) lies inside [0, size), without forming the sum.
constexpr bool fits(std::size_t offset, std::size_t length, std::size_t size) noexcept { return offset <= size && length <= size - offset; }

// `value` times `factor`, rounded down, and kMaxBytes where that is more. REQUIRES: factor is not negative.
constexpr std::size_t saturating_scale(std::size_t value, double factor) noexcept {
  const double product = factor * static_cast<double>(value);
  return product < static_cast<double>(kMaxBytes) ? static_cast<std::size_t>(product) : kMaxBytes;
}

// `value` as a To, or nothing when it does not fit.
template <std::integral To, std::integral From>
constexpr std::optional<To> try_narrow(From value) noexcept {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

// The throwing forms, for sizes that come from a caller. `what` names the quantity in the message: "the arena's
// bytes".
BERTH_EXPORT std::size_t checked_add(std::size_t a, std::size_t b, const char* what);
BERTH_EXPORT std::size_t checked_multiply(std::size_t a, std::size_t b, const char* what);
BERTH_EXPORT std::size_t checked_align_up(std::size_t value, std::size_t alignment, const char* what);
[[noreturn]] BERTH_EXPORT void throw_does_not_fit(const std::string& value, std::size_t bits, const char* what);

template <std::integral To, std::integral From>
constexpr To checked_narrow(From value, const char* what) {
  const std::optional<To> narrowed = try_narrow<To>(value);
  if (!narrowed) throw_does_not_fit(std::to_string(value), sizeof(To) * 8, what);
  return *narrowed;
}

}  // namespace berth

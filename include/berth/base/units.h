// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// Literals for byte counts: `limit(direct("cpu"), 2_GiB)`. Found by `using namespace berth;` or
// `using namespace berth::literals;`. A count that does not fit in 64 bits does not compile.
namespace berth {
inline namespace literals {

consteval std::size_t scaled_bytes(unsigned long long count, unsigned shift) {
  if (count > (~0ULL >> shift)) throw "the byte count does not fit in 64 bits";
  return static_cast<std::size_t>(count) << shift;
}

consteval std::size_t operator""_KiB(unsigned long long count) { return scaled_bytes(count, 10); }
consteval std::size_t operator""_MiB(unsigned long long count) { return scaled_bytes(count, 20); }
consteval std::size_t operator""_GiB(unsigned long long count) { return scaled_bytes(count, 30); }
consteval std::size_t operator""_TiB(unsigned long long count) { return scaled_bytes(count, 40); }

}  // namespace literals
}  // namespace berth

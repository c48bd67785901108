// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstring>

#include "berth/base/dtype.h"
#include "berth/export.h"

// One value of any element type, for fills: `x.fill(0)`, `full({2, 2}, 1.5, DType::bf16, "cpu")`. It keeps the
// value as given and converts it once, by the rules of copy/convert.h, when the target's dtype is known. A
// plain value type.
namespace berth {

class BERTH_EXPORT Scalar {
 public:
  template <class T>
  requires std::integral<T> || std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, float16> || std::same_as<T, bfloat16> ||
      std::same_as<T, float8_e4m3> || std::same_as<T, float8_e5m2> || std::same_as<T, std::complex<float>> ||
      std::same_as<T, std::complex<double>>
      Scalar(T value)
  noexcept : dtype_(dtype_of<T>()) { std::memcpy(bytes_.data(), &value, sizeof value); }

  DType dtype() const noexcept { return dtype_; }

  // The value as an element of another dtype, in the first size_bytes(dtype) bytes.
  std::array<std::byte, 16> as(DType dtype) const noexcept;

 private:
  DType dtype_;
  std::array<std::byte, 16> bytes_{};
};

}  // namespace berth

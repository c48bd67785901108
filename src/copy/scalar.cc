// SPDX-License-Identifier: Apache-2.0
#include "berth/copy/scalar.h"

#include "berth/copy/convert.h"

namespace berth {

std::array<std::byte, 16> Scalar::as(DType dtype) const noexcept {
  std::array<std::byte, 16> converted{};
  convert_element(bytes_.data(), dtype_, converted.data(), dtype);
  return converted;
}

}  // namespace berth

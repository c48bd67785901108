// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "file/numpy/npy_dtypes.h"
#include "file/numpy/npy_header.h"

// Writes the header; npy_header.cc reads it.
namespace berth::internal::file {

std::optional<std::string> npy_header(DType dtype, const Shape& shape, bool fortran_order) {
  const auto found = std::ranges::find(kNpyDTypes, dtype, &NpyDType::dtype);
  if (found == kNpyDTypes.end()) return std::nullopt;
  std::string dims;
  for (const std::int64_t dim : shape) dims += text::join(dims.empty() ? "" : " ", dim, ',');
  if (shape.rank() > 1) dims.pop_back();
  std::string text =
      text::join("{'descr': '", found->descr, "', 'fortran_order': ", fortran_order ? "True" : "False", ", 'shape': (", dims, "), }");
  constexpr std::size_t kStart = 10;  // version 1
  constexpr std::size_t kMultiple = 64;
  text.resize((kStart + text.size() + 1 + kMultiple - 1) / kMultiple * kMultiple - kStart - 1, ' ');
  text += '\n';
  std::string out(kNpyMagic);
  out += {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return out + text;
}

}  // namespace berth::internal::file

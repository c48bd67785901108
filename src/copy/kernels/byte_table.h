// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "berth/base/dtype.h"

// A conversion between elements of one byte is 256 results.
namespace berth {

struct ByteTable {
  alignas(64) std::uint8_t to[256];
};

// As the reference has it.
ByteTable make_byte_table(DType from, DType to) noexcept;

template <DType From, DType To>
const ByteTable& byte_table() noexcept {
  static const ByteTable kMade = make_byte_table(From, To);
  return kMade;
}

}  // namespace berth

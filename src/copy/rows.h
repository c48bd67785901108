// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "berth/base/dtype.h"
#include "berth/device/backend.h"

// Rows of elements on any device, read into host memory and written from it. On the host this is a plain loop; elsewhere the bytes go
// through the device's own copy, in one piece when they lie together and element by element when they do not. Correct everywhere, and
// the standard for what is fast.
namespace berth {

// A place to read elements from or write them to.
struct RowPlace {
  std::byte* data = nullptr;  // of element offset 0
  DType dtype = DType::u8;
  Backend* backend = nullptr;
};

// `count` elements from `offset` on, `stride` elements apart. Bits are moved, nothing is converted. Throws DeviceError.
void read_row(const RowPlace& from, std::int64_t offset, std::int64_t stride, std::size_t count, std::byte* host);
void write_row(const RowPlace& to, std::int64_t offset, std::int64_t stride, std::size_t count, const std::byte* host);

// One contiguous transfer between two places that a single backend can make; false when none can (two different devices that the host
// may not touch).
bool can_transfer(const Backend& source, const Backend& target) noexcept;
void transfer(const void* source, Backend& source_backend, void* target, Backend& target_backend, std::size_t bytes);

}  // namespace berth

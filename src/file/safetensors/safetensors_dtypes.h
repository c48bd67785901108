// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "berth/file/safetensors.h"

namespace berth::internal::file {

// Lookup in the format's dtypes; null if not found. Pure functions.
const SafetensorsDType* find_safetensors_dtype(std::string_view name) noexcept;
const SafetensorsDType* find_safetensors_dtype(DType dtype) noexcept;

// The size of the elements of a shape, packed at `bits` bits each. Returns nullopt on overflow, or if it is not
// a whole number of bytes.
std::optional<std::uint64_t> packed_bytes(const Shape& shape, int bits) noexcept;

}  // namespace berth::internal::file

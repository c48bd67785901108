// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "berth/file/safetensors.h"

namespace berth::internal::file {

// Null when there is none.
const SafetensorsDType* find_safetensors_dtype(std::string_view name) noexcept;
const SafetensorsDType* find_safetensors_dtype(DType dtype) noexcept;

// The bytes of so many elements of so many bits, side by side. Nothing when they are too many to count, or fill no whole number of bytes.
std::optional<std::uint64_t> packed_bytes(const Shape& shape, int bits) noexcept;

}  // namespace berth::internal::file

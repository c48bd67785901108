// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace berth::internal::device {

// An address as a number, for tables by address and for distances between them.
inline std::uintptr_t number(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace berth::internal::device

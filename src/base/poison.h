// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/namespace.h"
#include "base/sanitizers.h"

// Manual poisoning for AddressSanitizer builds: bytes that must not be accessed, such as a pool's cached blocks
// and the padding after a block. No-ops in other builds.
namespace berth::internal::base {

extern "C" {
void __asan_poison_memory_region(const volatile void* address, std::size_t bytes);
void __asan_unpoison_memory_region(const volatile void* address, std::size_t bytes);
}

inline void poison([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t bytes) noexcept {
  if constexpr (kAddressSanitizer) __asan_poison_memory_region(address, bytes);
}
inline void unpoison([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t bytes) noexcept {
  if constexpr (kAddressSanitizer) __asan_unpoison_memory_region(address, bytes);
}

}  // namespace berth::internal::base

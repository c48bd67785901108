// SPDX-License-Identifier: Apache-2.0
#include "copy/kernels/kernels.h"

// Replaces simd.cc when the library is built without Highway.
namespace berth::internal::copy {

std::span<const Kernels> all_kernels() noexcept { return {&plain_kernels(), 1}; }

}  // namespace berth::internal::copy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/kernels/kernels.h"

// Casts for ARM64 by hand, in place of those that Highway makes: with instructions that Highway 1.0 does not know (BFCVTN, arithmetic in f16),
// and those of 8-bit floats, which are bound by how many instructions a core finishes. Several blocks are taken through each step together:
// a core looks some forty vector instructions ahead, and finds little to do in one block, where each waits for the last.
namespace berth::internal::copy {

// The table with every cast that this processor can run. One that is not ARM64's stays as it is.
Kernels with_arm_casts(const Kernels& kernels) noexcept;

}  // namespace berth::internal::copy

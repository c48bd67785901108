// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/kernels/kernels.h"

// Hand-written casts for ARM64 that replace Highway's: those with instructions that Highway 1.0 lacks (BFCVTN,
// f16 arithmetic), and those of 8-bit floats, which are bound by instruction throughput. Several blocks go
// through each step together: a core looks some forty vector instructions ahead, and finds little parallelism
// in one block, where each instruction depends on the previous one. Used by simd.cc; any thread.
namespace berth::internal::copy {

// The table with every cast that this processor can run. Off ARM64 the table is returned unchanged.
Kernels with_arm_casts(const Kernels& kernels) noexcept;

}  // namespace berth::internal::copy

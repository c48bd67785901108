// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <vector>

#include "berth/base/dtype.h"
#include "berth/base/result.h"
#include "device/cuda/kernels/launch.h"

// The kernels of this build. They are compiled to images for several architectures, which are embedded in the
// library and which the driver loads at first use: berth needs no CUDA runtime. Any thread.
namespace berth::internal::device::cuda {

struct KernelSet {
  using Pairs = std::array<std::array<CUkernel, kDTypeCount>, kDTypeCount>;  // by source and target; nullptr: none

  Pairs rows = {};
  Pairs tiles = {};
  std::array<CUkernel, 5> moves = {};  // by the binary logarithm of an element's bytes
  CUkernel conversions = nullptr;
  CUkernel fill = nullptr;
  CUkernel gather = nullptr;
  std::vector<CUkernel> all;

  // Loads the images into the driver, once in a process. Fails where it accepts none of their architectures.
  static Result<const KernelSet*> get() noexcept;
};

// Enqueues a kernel with kThreads threads per block, and `task` as its parameter. REQUIRES: the set has the
// kernel.
Status launch(CUkernel kernel, std::uint64_t blocks, const void* task, StreamHandle stream) noexcept;

}  // namespace berth::internal::device::cuda

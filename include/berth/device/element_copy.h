// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/dtype.h"
#include "berth/base/shape.h"

// The argument of Backend::copy_elements, for devices with kernels of their own.
namespace berth {

// A strided copy that gathers, scatters and converts elements; both ends are on the backend's own device.
// Strides are in elements, and those of the source may be 0. The target's layout overlaps itself only where all
// source strides are 0 (a fill), so that the order of writes does not matter.
struct ElementCopy {
  void* target = nullptr;
  DType target_dtype = DType::u8;
  Strides target_strides;
  const void* source = nullptr;
  DType source_dtype = DType::u8;
  Strides source_strides;
  Shape shape;
};

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/dtype.h"
#include "berth/base/shape.h"

// What a device with kernels of its own is asked to do: Backend::copy_elements.
namespace berth {

// Elements of one shape, gathered, scattered and converted on the way; both ends are on the backend's own device. Strides are in elements, and
// those of the source may be 0. The target reaches an element twice only where all source strides are 0, so that it does not matter: a fill.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/copy/copy.h"

// A StridedSpan that owns nothing: what a copy that is over when the call returns needs of one. Making it copies no shape and counts nothing
// up. REQUIRES: what it points to stays as it is while it is used.
namespace berth::internal::copy {

struct SpanRef {
  void* data;
  DType dtype;
  const Shape* shape;
  const Strides* strides;
  Device device;
  bool read_only;

  SpanRef(const StridedSpan& span) noexcept
      : data(span.data), dtype(span.dtype), shape(&span.shape), strides(&span.strides), device(span.device), read_only(span.read_only) {}
  SpanRef(void* at, DType type, const Shape& of, const Strides& with, Device on, bool constant) noexcept
      : data(at), dtype(type), shape(&of), strides(&with), device(on), read_only(constant) {}
};

}  // namespace berth::internal::copy

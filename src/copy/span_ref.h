// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/copy/copy.h"

// A non-owning StridedSpan, for copies that are done when the call returns. Making one copies no shape and
// touches no reference count. REQUIRES: what it points to is not changed or destroyed while it is used.
namespace berth::internal::copy {

struct SpanRef {
  void* data;
  DType dtype;
  const Shape* shape;
  const Strides* strides;
  Device device;
  bool read_only;
  bool may_be_mapped = true;  // false: it is known to be no mapped file's (copy/mapped_bytes.h)

  SpanRef(const StridedSpan& span) noexcept
      : data(span.data), dtype(span.dtype), shape(&span.shape), strides(&span.strides), device(span.device), read_only(span.read_only) {}
  SpanRef(void* at, DType type, const Shape& of, const Strides& with, Device on, bool constant, bool mapped = true) noexcept
      : data(at), dtype(type), shape(&of), strides(&with), device(on), read_only(constant), may_be_mapped(mapped) {}
};

}  // namespace berth::internal::copy

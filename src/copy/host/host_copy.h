// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "berth/base/dtype.h"
#include "copy/kernels/kernels.h"

// Copies and fills of host-accessible memory, at memory speed: any layout, any dtypes, on as many threads as
// pay off. Knows pointers, strides and dtypes, and no objects of berth. `threads` is at least 1. `kernels`
// defaults to the best table of this processor; tests pass others, which give the same results. Any thread.
namespace berth::internal::copy {

struct HostSide {
  std::byte* data = nullptr;  // of the element at index 0, 0, …
  DType dtype = DType::u8;
  std::span<const std::int64_t> strides;  // in elements; one for each dimension
};

// REQUIRES: equal ranks; all elements are inside the address space; the sides do not overlap; no two indices of
// the target reach the same element.
void copy_on_host(std::span<const std::int64_t> shape, const HostSide& source, const HostSide& target, int threads,
                  const Kernels& kernels = best_kernels()) noexcept;

// Writes the element that `value` points to everywhere. Indices of the target may reach the same element.
void fill_on_host(std::span<const std::int64_t> shape, const HostSide& target, const std::byte* value, int threads,
                  const Kernels& kernels = best_kernels()) noexcept;

// Many copies at once, their work distributed over the threads together.
struct HostCopy {
  std::span<const std::int64_t> shape;
  HostSide source;
  HostSide target;
};
void copy_on_host(std::span<const HostCopy> copies, int threads, const Kernels& kernels = best_kernels()) noexcept;

// The same for bytes that are contiguous on both sides, and copied without conversion.
struct HostRun {
  const std::byte* source;
  std::byte* target;
  std::size_t bytes;
};
void copy_on_host(std::span<const HostRun> runs, int threads, const Kernels& kernels = best_kernels()) noexcept;

}  // namespace berth::internal::copy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "copy/host/conversion.h"
#include "copy/kernels/kernels.h"

// Copies elements along one axis: gathers, converts and scatters them, in pieces that stay in the L1 cache, and
// skips the steps that are not needed. Immutable; any thread.
namespace berth::internal::copy {

class ElementRun {
 public:
  ElementRun(const Kernels& kernels, const Conversion& conversion, std::int64_t source_step, std::int64_t target_step) noexcept;

  void operator()(const std::byte* source, std::byte* target, std::size_t count) const noexcept;

  // Several runs, the strides between them in bytes; `ahead` as in CopyRuns.
  void operator()(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride, std::size_t runs,
                  std::size_t count, std::ptrdiff_t ahead = 0) const noexcept;

 private:
  void run_piece(const std::byte* source, std::byte* target, std::size_t count) const noexcept;

  const Conversion& conversion_;
  CopyRuns copy_runs_;
  GatherRow gather_ = nullptr;    // null: the source is contiguous
  ScatterRow scatter_ = nullptr;  // null: the target is contiguous
  std::ptrdiff_t source_step_;
  std::ptrdiff_t target_step_;
  std::ptrdiff_t source_bytes_;  // from one element to the next
  std::ptrdiff_t target_bytes_;
};

}  // namespace berth::internal::copy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "copy/host/conversion.h"
#include "copy/kernels/kernels.h"

// Copies rows that are contiguous on both sides to a target large enough for non-temporal stores (kernels.h). A
// partial write triggers a read-for-ownership; full-line non-temporal stores do not. So elements are converted
// piece by piece into a buffer in the L1 cache, and streamed from there to memory. Immutable; any thread.
namespace berth::internal::copy {

class StreamRow {
 public:
  StreamRow(const Kernels& kernels, const Conversion& conversion) noexcept
      : conversion_(conversion), stream_runs_(kernels.stream_runs), flush_(kernels.flush_stream) {}

  // False if elements shrink to less than half, because reading dominates then, and for rows of a few cache
  // lines.
  static bool is_worth(const Conversion& conversion, std::size_t row_elements) noexcept;

  // Flushes the non-temporal stores, so that other threads see what it has written.
  void operator()(const std::byte* source, std::byte* target, std::size_t count) const noexcept;

 private:
  void convert(const std::byte* source, std::byte* target, std::size_t count) const noexcept;
  void convert_piece(const std::byte* source, std::byte* target, std::size_t count) const noexcept;

  const Conversion& conversion_;
  StreamRuns stream_runs_;
  FlushStream flush_;
};

}  // namespace berth::internal::copy

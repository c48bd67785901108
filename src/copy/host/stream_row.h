// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "copy/host/conversion.h"
#include "copy/kernels/kernels.h"

// Rows that lie together on both sides, of a copy whose target is so large that it is written past the caches (kernels.h). A processor that is
// told to write part of a line reads it first; whole lines past the caches are not. So elements are converted in the first cache, a piece at a
// time, and go from there to memory.
namespace berth::internal::copy {

class StreamRow {
 public:
  StreamRow(const Kernels& kernels, const Conversion& conversion) noexcept
      : conversion_(conversion), stream_runs_(kernels.stream_runs), flush_(kernels.flush_stream) {}

  // Not where elements become smaller than half: then it is reading that takes the time. Nor for rows of a few lines.
  static bool is_worth(const Conversion& conversion, std::size_t row_elements) noexcept;

  // What it has written is there for other threads.
  void operator()(const std::byte* source, std::byte* target, std::size_t count) const noexcept;

 private:
  void convert(const std::byte* source, std::byte* target, std::size_t count) const noexcept;
  void convert_piece(const std::byte* source, std::byte* target, std::size_t count) const noexcept;

  const Conversion& conversion_;
  StreamRuns stream_runs_;
  FlushStream flush_;
};

}  // namespace berth::internal::copy

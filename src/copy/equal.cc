// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/axes.h"
#include "berth/copy/copy.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "copy/validate.h"

namespace berth {

using namespace internal;
using namespace internal::copy;

namespace {

constexpr std::size_t kChunk = 256;  // elements compared at a time

// Reads elements of any device into host memory for comparison. Off the host the bytes go through the device's
// memory copy, in one transfer when they are contiguous and element by element when they are not.
struct Reader {
  const std::byte* data;
  std::size_t size;  // of an element
  Backend& backend;
  std::byte through[16 * kChunk];

  explicit Reader(const StridedSpan& span)
      : data(static_cast<const std::byte*>(span.data)), size(size_bytes(span.dtype)), backend(berth::backend(span.device)) {}

  // `count` elements from `offset` on, `stride` elements apart; valid until the next call.
  const std::byte* read(std::int64_t offset, std::int64_t stride, std::size_t count) {
    const std::byte* const first = data + offset * static_cast<std::int64_t>(size);
    const bool together = stride == 1 || count == 1;
    const bool on_host = backend.properties().abilities.host_access;
    if (together && on_host) return first;
    const std::size_t most = together ? count : 1;
    for (std::size_t i = 0; i < count; i += most) {
      const std::byte* const from = first + static_cast<std::int64_t>(i) * stride * static_cast<std::int64_t>(size);
      on_host ? static_cast<void>(std::memcpy(through + i * size, from, size)) : fetch(from, through + i * size, most * size);
    }
    return through;
  }

  void fetch(const std::byte* from, std::byte* to, std::size_t bytes) {
    const Status done = backend.copy({to, Device(), from, backend.device(), bytes}, {});
    if (!done) throw_failure(done.failure(), backend.device(), "copying");
  }
};

}  // namespace

bool equal(const StridedSpan& a, const StridedSpan& b) {
  checked_range(a);
  checked_range(b);
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.shape.num_elements() == 0) return true;
  const Loop loop = make_loop(a.shape, a.strides, b.strides);
  const LoopAxis row = loop.row();
  Reader left(a);
  Reader right(b);
  bool same = true;
  for_each_chunk(loop, kChunk, [&](std::int64_t s, std::int64_t t, std::size_t count) {
    same = same && std::memcmp(left.read(s, row.source_stride, count), right.read(t, row.target_stride, count), count * left.size) == 0;
  });
  return same;
}

}  // namespace berth

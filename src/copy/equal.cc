// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/axes.h"
#include "berth/copy/copy.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "copy/mapped_bytes.h"
#include "copy/validate.h"
#include "os/memory/bus_guard.h"

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

  bool on_host() const noexcept { return backend.properties().abilities.host_access; }

  // `count` elements from `offset` on, `stride` elements apart; valid until the next call.
  template <class Touch>
  const std::byte* read(std::int64_t offset, std::int64_t stride, std::size_t count, const Touch& touch) {
    const std::byte* const first = data + offset * static_cast<std::int64_t>(size);
    const bool together = stride == 1 || count == 1;
    if (together && on_host()) return first;
    const auto step = stride * static_cast<std::int64_t>(size);
    if (on_host()) {
      touch([&] { gather(first, step, count); });
      return through;
    }
    const std::size_t most = together ? count : 1;
    for (std::size_t i = 0; i < count; i += most) fetch(first + static_cast<std::int64_t>(i) * step, through + i * size, most * size);
    return through;
  }

  void gather(const std::byte* first, std::int64_t step, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(through + i * size, first + static_cast<std::int64_t>(i) * step, size);
  }

  void fetch(const std::byte* from, std::byte* to, std::size_t bytes) {
    const Status done = backend.copy({to, Device(), from, backend.device(), bytes}, {});
    if (!done) throw_failure(done.failure(), backend.device(), "copying");
  }
};

// `touch` runs what only reads host memory.
template <class Touch>
bool is_equal(const Loop& loop, Reader& left, Reader& right, const Touch& touch) {
  const LoopAxis row = loop.row();
  bool same = true;
  for_each_chunk(loop, kChunk, [&](std::int64_t s, std::int64_t t, std::size_t count) {
    if (!same) return;
    const std::byte* const one = left.read(s, row.source_stride, count, touch);
    const std::byte* const other = right.read(t, row.target_stride, count, touch);
    touch([&] { same = std::memcmp(one, other, count * left.size) == 0; });
  });
  return same;
}

bool is_equal(const StridedSpan& a, const StridedSpan& b) {
  const Loop loop = make_loop(a.shape, a.strides, b.strides);
  Reader left(a);
  Reader right(b);
  bool same = false;
  if (left.on_host() && right.on_host())
    os::BusGuard::touch([&] { same = is_equal(loop, left, right, [](const auto& work) { work(); }); });
  else
    same = is_equal(loop, left, right, [](const auto& work) { os::BusGuard::touch(work); });
  return same;
}

}  // namespace

bool equal(const StridedSpan& a, const StridedSpan& b) {
  checked_range(a);
  checked_range(b);
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.shape.num_elements() == 0) return true;
  MappedTouches mapped;
  mapped.add(a);
  mapped.add(b);
  bool same = false;
  mapped.run([&] { same = is_equal(a, b); });
  return same;
}

}  // namespace berth

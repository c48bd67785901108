// SPDX-License-Identifier: Apache-2.0
#include "berth/copy/copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/device/registry.h"
#include "copy/axes.h"
#include "copy/lanes.h"
#include "copy/rows.h"
#include "memory/stream_check.h"
#include "record/emit.h"

namespace berth {

namespace {

constexpr std::size_t kChunk = 256;  // elements converted at a time: small enough to stay in the first cache

[[noreturn]] void throw_shapes(const StridedSpan& source, const StridedSpan& target) {
  throw ArgumentError(ErrorCode::size_mismatch,
                      {text::join("copying ", source.shape.to_string(), " to ", target.shape.to_string()), "the shapes differ",
                       "use reshape or expand to make them equal"},
                      {{"source", source.shape.to_string()}, {"target", target.shape.to_string()}});
}

[[noreturn]] void throw_overlapping(const StridedSpan& target) {
  throw ArgumentError(ErrorCode::overlapping_view,
                      {text::join("writing to a view of shape ", target.shape.to_string(), " and strides ", target.strides.to_string()),
                       "two indices reach the same element, so the result would depend on the order",
                       "write to a clone, or to the storage it is a view of"},
                      {{"shape", target.shape.to_string()}, {"strides", target.strides.to_string()}});
}

struct ByteRange {
  std::uintptr_t begin;
  std::uintptr_t end;
};

// Where the elements are. Refuses a span that contradicts itself.
ByteRange checked_range(const StridedSpan& span) {
  const auto refuse = [&](ErrorCode code, std::string why, std::string help) {
    throw ArgumentError(code,
                        {text::join("a span of shape ", span.shape.to_string(), " and strides ", span.strides.to_string()), std::move(why),
                         std::move(help)},
                        {{"shape", span.shape.to_string()}, {"strides", span.strides.to_string()}});
  };
  if (span.shape.rank() != span.strides.rank())
    refuse(ErrorCode::size_mismatch, "there is not one stride for each dimension", "use Strides::contiguous(shape)");
  const auto extent = try_extent(span.shape, span.strides, span.dtype);
  if (!extent) refuse(ErrorCode::out_of_bounds, "its elements lie farther apart than 63 bits can count", "use smaller strides");
  const bool none = extent->from_bytes == 0;
  if (!none && span.data == nullptr)
    refuse(ErrorCode::invalid_argument, "it has elements at a null pointer", "pass the address of the first");
  const auto first = reinterpret_cast<std::uintptr_t>(span.data);
  if (!none && (first < extent->before_bytes || !try_add(first, extent->from_bytes)))
    refuse(ErrorCode::out_of_bounds, "its elements lie outside the address space", "use smaller strides");
  return {first - extent->before_bytes, first + extent->from_bytes};
}

// Everything that can be refused is refused here, before a byte moves.
void check_target(const StridedSpan& target, const char* what) {
  checked_range(target);
  backend(target.device);
  if (!target.read_only) return;
  throw AccessError(ErrorCode::read_only,
                    {text::join(std::string_view(what), " a storage of shape ", target.shape.to_string()), "it is read-only",
                     "clone() gives a copy that can be written"},
                    {{"shape", target.shape.to_string()}});
}

void check_pair(const StridedSpan& source, const StridedSpan& target) {
  check_target(target, "copying into");
  checked_range(source);
  backend(source.device);
  if (source.shape != target.shape) throw_shapes(source, target);
  if (overlaps_itself(target.shape, target.strides)) throw_overlapping(target);
}

bool may_overlap(const StridedSpan& a, const StridedSpan& b) {
  // Host devices share one address space, whatever they are called.
  const bool same_space = a.device == b.device ||
                          (backend(a.device).properties().abilities.host_access && backend(b.device).properties().abilities.host_access);
  if (!same_space) return false;
  const ByteRange x = checked_range(a);
  const ByteRange y = checked_range(b);
  return x.begin < y.end && y.begin < x.end;
}

RowPlace place(const StridedSpan& span) { return {static_cast<std::byte*>(span.data), span.dtype, &backend(span.device)}; }

// Same dtype: bits are moved, by whole rows where both sides lie together.
void move_elements(const RowPlace& from, const RowPlace& to, const Loop& loop) {
  const auto size = static_cast<std::ptrdiff_t>(size_bytes(from.dtype));
  if (loop.is_dense() && can_transfer(*from.backend, *to.backend)) {
    const std::size_t bytes = static_cast<std::size_t>(loop.row.size) * static_cast<std::size_t>(size);
    for_each_row(loop, [&](std::int64_t s, std::int64_t t) {
      transfer(from.data + s * size, *from.backend, to.data + t * size, *to.backend, bytes);
    });
    return;
  }
  std::byte through[16 * kChunk];
  for_each_chunk(loop, kChunk, [&](std::int64_t s, std::int64_t t, std::size_t count) {
    read_row(from, s, loop.row.source_stride, count, through);
    write_row(to, t, loop.row.target_stride, count, through);
  });
}

void convert_elements(const RowPlace& from, const RowPlace& to, const Loop& loop) {
  const Lane lane = lane_of(from.dtype);
  std::byte through[16 * kChunk];
  LaneValue lanes[kChunk];
  for_each_chunk(loop, kChunk, [&](std::int64_t s, std::int64_t t, std::size_t count) {
    read_row(from, s, loop.row.source_stride, count, through);
    load_lanes(from.dtype, through, static_cast<std::ptrdiff_t>(size_bytes(from.dtype)), count, lanes);
    store_lanes(to.dtype, lane, lanes, through, static_cast<std::ptrdiff_t>(size_bytes(to.dtype)), count);
    write_row(to, t, loop.row.target_stride, count, through);
  });
}

void run_apart(const StridedSpan& source, const StridedSpan& target) {
  const Loop loop = make_loop(source.shape, source.strides, target.strides);
  source.dtype == target.dtype ? move_elements(place(source), place(target), loop) : convert_elements(place(source), place(target), loop);
}

// The copy itself, on this thread, now. REQUIRES: check_pair passed.
void run(const StridedSpan& source, const StridedSpan& target) {
  if (target.shape.num_elements() == 0) return;
  if (!may_overlap(source, target)) return run_apart(source, target);
  if (source.data == target.data && source.dtype == target.dtype && source.strides == target.strides) return;
  std::vector<std::byte> bytes(source.shape.size_bytes(source.dtype));
  const StridedSpan between{bytes.data(), source.dtype, source.shape, Strides::contiguous(source.shape), Device(), {}};
  run_apart(source, between);
  run_apart(between, target);
}

void record_copy(const StridedSpan& source, const StridedSpan& target, StreamRef stream, const Site& site) {
  emit({.kind = RecordKind::copied,
        .device = target.device.key(),
        .source_device = source.device.key(),
        .address = target.data,
        .bytes = target.shape.size_bytes(target.dtype),
        .stream_id = stream.id(),
        .tag = current_tag(),
        .site = intern(site)});
}

// Tells the check of streams, before the work can have run and let go of what it touches.
void note_touch(const StridedSpan& span, StreamRef stream, bool writes) {
  const ByteRange range = checked_range(span);
  if (range.end > range.begin)
    stream_check::touched(reinterpret_cast<const void*>(range.begin), range.end - range.begin, span.device, stream, writes);
}

void note_copy(const StridedSpan& source, const StridedSpan& target, StreamRef stream) {
  note_touch(source, stream, false);
  note_touch(target, stream, true);
}

// Runs work now, or hands it to the stream and waits unless told not to.
template <class Work>
Event run_in_order(const CopyOptions& options, Work work) {
  if (!options.stream) {
    work();
    return {};
  }
  Event done = options.stream->enqueue(std::move(work));
  if (!options.non_blocking) done.wait();
  return done;
}

StridedSpan raw(const void* data, Device device, std::size_t bytes) {
  if (bytes > kMaxBytes) {
    throw ArgumentError(ErrorCode::size_overflow,
                        {text::join("raw memory of ", bytes, " bytes"), "no address space is that large", "check the size"},
                        {{"bytes", bytes}});
  }
  return {const_cast<void*>(data), DType::u8, {static_cast<std::int64_t>(bytes)}, {1}, device, {}};
}

}  // namespace

Event copy(const StridedSpan& source, const StridedSpan& target, const CopyOptions& options, Site site) {
  check_pair(source, target);
  if (is_checking_streams()) [[unlikely]]
    note_copy(source, target, options.stream);
  Event done = run_in_order(options, [source, target] { run(source, target); });
  if (is_recording()) [[unlikely]]
    record_copy(source, target, options.stream, site);
  return done;
}

void require_equal_counts(std::size_t sources, std::size_t targets) {
  if (sources == targets) return;
  throw ArgumentError(
      ErrorCode::size_mismatch,
      {text::join("copying ", sources, " sources to ", targets, " targets"), "the counts differ", "pass one target for each source"},
      {{"sources", sources}, {"targets", targets}});
}

Event copy_batch(std::span<const StridedSpan> sources, std::span<const StridedSpan> targets, const CopyOptions& options, Site site) {
  require_equal_counts(sources.size(), targets.size());
  for (std::size_t i = 0; i < sources.size(); ++i) check_pair(sources[i], targets[i]);
  for (std::size_t i = 0; is_checking_streams() && i < sources.size(); ++i) note_copy(sources[i], targets[i], options.stream);
  Event done =
      run_in_order(options, [from = std::vector(sources.begin(), sources.end()), to = std::vector(targets.begin(), targets.end())] {
        for (std::size_t i = 0; i < from.size(); ++i) run(from[i], to[i]);
      });
  for (std::size_t i = 0; is_recording() && i < sources.size(); ++i) record_copy(sources[i], targets[i], options.stream, site);
  return done;
}

Event fill(const StridedSpan& target, Scalar value, const CopyOptions& options, Site site) {
  check_target(target, "filling");
  // A fill writes the same everywhere, so a target that reaches an element twice is harmless.
  const std::array<std::byte, 16> element = value.as(target.dtype);
  if (is_checking_streams()) [[unlikely]]
    note_touch(target, options.stream, true);
  Event done = run_in_order(options, [target, element] {
    if (target.shape.num_elements() == 0) return;
    const Loop loop = make_loop(target.shape, target.strides, target.strides);
    const RowPlace to = place(target);
    const std::size_t size = size_bytes(target.dtype);
    const std::size_t most = loop.is_dense() ? static_cast<std::size_t>(loop.row.size) : 1;
    for_each_chunk(loop, most, [&](std::int64_t, std::int64_t t, std::size_t count) {
      const Status filled =
          to.backend->fill(to.data + t * static_cast<std::int64_t>(size), count * size, std::span(element).first(size), {});
      if (!filled) throw_failure(filled.failure(), target.device, "filling");
    });
  });
  if (is_recording()) [[unlikely]] {
    emit({.kind = RecordKind::filled,
          .device = target.device.key(),
          .address = target.data,
          .bytes = target.shape.size_bytes(target.dtype),
          .stream_id = options.stream.id(),
          .tag = current_tag(),
          .site = intern(site)});
  }
  return done;
}

bool equal(const StridedSpan& a, const StridedSpan& b) {
  checked_range(a);
  checked_range(b);
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.shape.num_elements() == 0) return true;
  const Loop loop = make_loop(a.shape, a.strides, b.strides);
  const RowPlace left = place(a);
  const RowPlace right = place(b);
  std::byte x[16 * kChunk];
  std::byte y[16 * kChunk];
  bool same = true;
  for_each_chunk(loop, kChunk, [&](std::int64_t s, std::int64_t t, std::size_t count) {
    if (!same) return;
    read_row(left, s, loop.row.source_stride, count, x);
    read_row(right, t, loop.row.target_stride, count, y);
    same = std::memcmp(x, y, count * size_bytes(a.dtype)) == 0;
  });
  return same;
}

Event copy_bytes(void* target, Device target_device, const void* source, Device source_device, std::size_t bytes,
                 const CopyOptions& options, Site site) {
  return copy(raw(source, source_device, bytes), raw(target, target_device, bytes), options, site);
}

Event fill_bytes(void* target, Device target_device, unsigned char value, std::size_t bytes, const CopyOptions& options, Site site) {
  return fill(raw(target, target_device, bytes), value, options, site);
}

}  // namespace berth

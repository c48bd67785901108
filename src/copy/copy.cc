// SPDX-License-Identifier: Apache-2.0
#include "berth/copy/copy.h"

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "copy/notes.h"
#include "copy/now.h"
#include "copy/route/execute.h"
#include "copy/validate.h"
#include "memory/race_detector.h"

// The public API: validates the arguments, then runs the work at once, or in its stream.
namespace berth {

using namespace internal;
using namespace internal::copy;
using namespace internal::memory;

namespace {

// Enqueues the work, and waits for it unless the call is non-blocking.
template <class Work>
Event run_in(const CopyOptions& options, Work work) {
  Event done = options.stream->enqueue(std::move(work));
  if (!options.non_blocking) done.wait();
  return done;
}

// Raw memory as a one-dimensional span of bytes.
struct RawShape {
  Shape shape;
  Strides strides{1};

  explicit RawShape(std::size_t bytes) : shape{checked(bytes)} {}

  static std::int64_t checked(std::size_t bytes) {
    if (bytes <= kMaxBytes) return static_cast<std::int64_t>(bytes);
    throw ArgumentError(ErrorCode::size_overflow,
                        {text::join("raw memory of ", bytes, " bytes"), "no address space is that large", "check the size"},
                        {{"bytes", bytes}});
  }
  SpanRef ref(const void* data, Device device) const noexcept {
    return {const_cast<void*>(data), DType::u8, shape, strides, device, false};
  }
  StridedSpan span(const void* data, Device device) const { return {const_cast<void*>(data), DType::u8, shape, strides, device, {}}; }
};

}  // namespace

void internal::copy::copy_now(const SpanRef& source, const SpanRef& target, const Site& site) {
  const CopyWatch watch;
  const ValidatedPair pair = validate_pair(source, target);
  if (is_detecting_races()) [[unlikely]]
    note_copy(source, target, {});
  run_pair(source, target, pair);
  watch.copied(source, target, pair, {}, site);
}

void internal::copy::fill_now(const SpanRef& target, Scalar value, const Site& site) {
  const CopyWatch watch;
  Backend& backend = validate_fill(target);
  if (is_detecting_races()) [[unlikely]]
    note_fill(target, {});
  run_fill(target, backend, value.as(target.dtype));
  watch.filled(target, {}, site);
}

Event copy(const StridedSpan& source, const StridedSpan& target, const CopyOptions& options, Site site) {
  if (!options.stream) {
    copy_now(source, target, site);
    return {};
  }
  const CopyWatch watch;
  const ValidatedPair pair = validate_pair(source, target);
  if (is_detecting_races()) [[unlikely]]
    note_copy(source, target, options.stream);
  Event done = run_in(options, [source, target, pair] { run_pair(source, target, pair); });
  watch.copied(source, target, pair, options, site);
  return done;
}

// A fill writes the same value everywhere, so a target that reaches an element twice is harmless.
Event fill(const StridedSpan& target, Scalar value, const CopyOptions& options, Site site) {
  if (!options.stream) {
    fill_now(target, value, site);
    return {};
  }
  const CopyWatch watch;
  Backend& backend = validate_fill(target);
  if (is_detecting_races()) [[unlikely]]
    note_fill(target, options.stream);
  Event done = run_in(options, [target, &backend, element = value.as(target.dtype)] { run_fill(target, backend, element); });
  watch.filled(target, options, site);
  return done;
}

Event copy_bytes(void* target, Device target_device, const void* source, Device source_device, std::size_t bytes,
                 const CopyOptions& options, Site site) {
  const RawShape row(bytes);
  if (options.stream) return berth::copy(row.span(source, source_device), row.span(target, target_device), options, site);
  copy_now(row.ref(source, source_device), row.ref(target, target_device), site);
  return {};
}

Event fill_bytes(void* target, Device target_device, unsigned char value, std::size_t bytes, const CopyOptions& options, Site site) {
  const RawShape row(bytes);
  if (options.stream) return fill(row.span(target, target_device), value, options, site);
  fill_now(row.ref(target, target_device), value, site);
  return {};
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "copy/notes.h"

#include <algorithm>

#include "base/text.h"
#include "berth/copy/route.h"
#include "copy/route/planner.h"
#include "memory/race_detector.h"

namespace berth::internal::copy {

namespace {

void note_touch(const SpanRef& span, StreamRef stream, bool writes) {
  const ByteRange range = checked_range(span);
  if (range.end > range.begin)
    memory::race_detector::touched(reinterpret_cast<const void*>(range.begin), range.end - range.begin, span.device, stream, writes);
}

// "host", "kernel > transfer". A copy within host memory, which skips the planner, is one step.
Tag route_in_words(const SpanRef& source, const SpanRef& target, const ValidatedPair& pair) {
  if (pair.kind == PairKind::nothing) return "nothing";
  if (pair.kind == PairKind::host) return "host";
  std::string words;
  for (const RouteStep& step : plan_checked(source, target, pair).steps)
    words += text::join(words.empty() ? "" : " > ", to_string(step.kind));
  return Tag(words);
}

}  // namespace

void note_copy(const SpanRef& source, const SpanRef& target, StreamRef stream) {
  note_touch(source, stream, false);
  note_touch(target, stream, true);
}

void note_fill(const SpanRef& target, StreamRef stream) { note_touch(target, stream, true); }

// Never 0 if the call waited: 0 means that it did not.
std::uint64_t CopyWatch::took_ns(const CopyOptions& options) const noexcept {
  const bool waited = !options.stream || !options.non_blocking;
  return waited ? std::max<std::uint64_t>(os::steady_time_ns() - begin_ns_, 1) : 0;
}

void CopyWatch::record_copy(const SpanRef& source, const SpanRef& target, const ValidatedPair* pair, const CopyOptions& options,
                            const Site& site, std::size_t count) const {
  const std::uint64_t took = took_ns(options) / count;
  record::emit({.kind = RecordKind::copied,
                .device = target.device.key(),
                .source_device = source.device.key(),
                .address = target.data,
                .bytes = target.shape->size_bytes(target.dtype),
                .stream_id = options.stream.id(),
                .tag = current_tag(),
                .site = intern(site),
                .dtype = target.dtype,
                .source_dtype = source.dtype,
                .route = pair == nullptr ? Tag("batch") : route_in_words(source, target, *pair),
                .took_ns = took});
}

void CopyWatch::record_fill(const SpanRef& target, const CopyOptions& options, const Site& site) const {
  record::emit({.kind = RecordKind::filled,
                .device = target.device.key(),
                .address = target.data,
                .bytes = target.shape->size_bytes(target.dtype),
                .stream_id = options.stream.id(),
                .tag = current_tag(),
                .site = intern(site),
                .dtype = target.dtype,
                .route = "fill",
                .took_ns = took_ns(options)});
}

}  // namespace berth::internal::copy

// SPDX-License-Identifier: Apache-2.0
#include "copy/notes.h"

#include "copy/check.h"
#include "memory/stream_check.h"
#include "record/emit.h"

namespace berth {

namespace {

void note_touch(const SpanRef& span, StreamRef stream, bool writes) {
  const ByteRange range = checked_range(span);
  if (range.end > range.begin)
    stream_check::touched(reinterpret_cast<const void*>(range.begin), range.end - range.begin, span.device, stream, writes);
}

}  // namespace

void note_copy(const SpanRef& source, const SpanRef& target, StreamRef stream) {
  note_touch(source, stream, false);
  note_touch(target, stream, true);
}

void note_fill(const SpanRef& target, StreamRef stream) { note_touch(target, stream, true); }

void record_copy(const SpanRef& source, const SpanRef& target, StreamRef stream, const Site& site) {
  emit({.kind = RecordKind::copied,
        .device = target.device.key(),
        .source_device = source.device.key(),
        .address = target.data,
        .bytes = target.shape->size_bytes(target.dtype),
        .stream_id = stream.id(),
        .tag = current_tag(),
        .site = intern(site)});
}

void record_fill(const SpanRef& target, StreamRef stream, const Site& site) {
  emit({.kind = RecordKind::filled,
        .device = target.device.key(),
        .address = target.data,
        .bytes = target.shape->size_bytes(target.dtype),
        .stream_id = stream.id(),
        .tag = current_tag(),
        .site = intern(site)});
}

}  // namespace berth

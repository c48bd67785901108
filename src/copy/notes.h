// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/span_ref.h"

// What copies and fills tell those who watch: the check of streams beforehand, sinks afterwards. Asking costs a load each.
namespace berth {

// Before the work can have run and let go of what it touches.
void note_copy(const SpanRef& source, const SpanRef& target, StreamRef stream);
void note_fill(const SpanRef& target, StreamRef stream);

void record_copy(const SpanRef& source, const SpanRef& target, StreamRef stream, const Site& site);
void record_fill(const SpanRef& target, StreamRef stream, const Site& site);

}  // namespace berth

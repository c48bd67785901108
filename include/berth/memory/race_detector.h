// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/export.h"

// The race detector of streams: it finds blocks that two streams touch without an order between them, and blocks that are freed while a stream may
// still be at work on them. With BERTH_CHECK=streams it is on from the start.
//
// It sees the copies and fills that berth runs (`copy_from`, `fill`, `to`, `copy_bytes`, …) on blocks that were allocated while it was on,
// and judges by what the program has said: waits of one stream for another's event, host threads that waited for a stream, and
// `used_on`. That two streams happened to run one after the other is no order. What it finds is reported as misuse of kind
// `unordered_streams` with both streams (record/misuse.h), and what was being done goes on. Work of your own it does not see: say
// `used_on`.
//
// Copies and frees get slower while it is on; while it is off, they cost one load more. Any thread may call both.
namespace berth {

enum class RaceDetection : bool { off, on };
BERTH_EXPORT void set_race_detection(RaceDetection wanted) noexcept;
BERTH_EXPORT RaceDetection race_detection() noexcept;

}  // namespace berth

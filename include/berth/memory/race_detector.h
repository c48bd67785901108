// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/export.h"

// The race detector of streams: it finds blocks that two streams touch with no order between them, and blocks
// that are freed while a stream may still have pending work on them. BERTH_CHECK=streams turns it on at the
// start.
//
// It sees the copies and fills that berth runs (`copy_from`, `fill`, `to`, `copy_bytes`, …) on blocks that were
// allocated while it was on, and judges by the happens-before edges that the program has made: a stream's wait
// for another's event, a host thread's wait for a stream, and `used_on`. That two streams happened to run one
// after the other is no order. What it finds is reported as misuse of kind `unordered_streams` with both
// streams (record/misuse.h), and the operation proceeds. It does not see work that the program submits itself:
// announce that with `used_on`.
//
// Copies and frees are slower while it is on; while it is off, they cost one extra load. Any thread may call
// both functions.
namespace berth {

enum class RaceDetection : bool { off, on };
BERTH_EXPORT void set_race_detection(RaceDetection wanted) noexcept;
BERTH_EXPORT RaceDetection race_detection() noexcept;

}  // namespace berth

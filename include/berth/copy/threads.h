// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/export.h"

// How many threads a copy, a conversion or a fill of host memory may use, including the calling thread. Large
// work is split into items that the caller and berth's worker threads take in turn; work too small to be worth
// waking a worker runs on the caller alone. The default is BERTH_THREADS or, if that is not set, the number of
// processors this process may use, at most 16: more do not make memory faster.
//
// Results do not depend on it. Any thread may read and set it; work that has begun is not affected.
namespace berth {

inline constexpr int kMostCopyThreads = 256;

// Throws ArgumentError(invalid_argument) when BERTH_THREADS is not a valid number and none was set.
BERTH_EXPORT int copy_threads();

// Throws ArgumentError(limit_exceeded) unless 1 <= threads <= kMostCopyThreads. With 1, no worker is ever
// started.
BERTH_EXPORT void set_copy_threads(int threads);

}  // namespace berth

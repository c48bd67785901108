// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/export.h"

// How many threads a copy, a conversion or a fill of host memory may use, the calling one included. Large work is cut into pieces that the
// caller and berth's own workers take in turn; work too small to be worth waking anyone runs on the caller alone. The number is
// BERTH_THREADS, or that of the processors this process may use, at most 16: memory is not faster for more.
//
// Results do not depend on it. Any thread may ask and set; work that has begun is not affected.
namespace berth {

inline constexpr int kMostCopyThreads = 256;

// Throws ArgumentError(invalid_argument) when BERTH_THREADS makes no sense and no number was set.
BERTH_EXPORT int copy_threads();

// Throws ArgumentError(limit_exceeded) unless 1 <= threads <= kMostCopyThreads. With 1, no worker is ever started.
BERTH_EXPORT void set_copy_threads(int threads);

}  // namespace berth

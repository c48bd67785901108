// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The adaptor that refuses requests that would exceed a limit. It counts requested bytes, and is exact under
// concurrency: the sum of the live blocks never exceeds the limit, and a request that fits beside them is never
// refused. (While another thread's request is still in progress in the allocator below, and may yet fail, a
// request that fits only without it waits for the outcome.)
namespace berth {

BERTH_EXPORT std::shared_ptr<Allocator> limit(std::shared_ptr<Allocator> upstream, std::size_t limit_bytes);

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The adaptor that refuses what would go over a limit. It counts requested bytes, and it is exact, whatever threads do: the sum of
// the blocks that live never passes the limit, and a request that fits beside them is never refused. (While another thread's
// request is still on its way through the allocator below, and may yet fail, a request that would only fit without it waits
// for the outcome.)
namespace berth {

BERTH_EXPORT std::shared_ptr<Allocator> limit(std::shared_ptr<Allocator> upstream, std::size_t limit_bytes);

}  // namespace berth

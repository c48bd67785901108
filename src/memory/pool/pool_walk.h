// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/memory/snapshot.h"
#include "memory/pool/pool_core.h"
#include "memory/pool/regions.h"
#include "memory/pool/stream_book.h"

// A pool's list of blocks for a snapshot, made while other threads allocate and free. Without the mutex.
namespace berth::internal::memory {

void walk_blocks(const PoolCore& core, const StreamBook& book, const Regions& regions, Snapshot& snapshot);

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "berth/memory/out_of_memory.h"

// Hooks that higher levels install to take part in a refusal. Both are called on the requesting thread, with no
// lock held; there is one of each for the process.
namespace berth::internal::memory {

// Frees memory that is held for other processes that may not need it any more. True: some was freed, and the
// request is retried.
using ReclaimHook = bool (*)() noexcept;
inline constinit std::atomic<ReclaimHook> g_reclaim_hook{nullptr};

// Sees the state of the process just before OutOfMemory is thrown.
using RefusalHook = void (*)(const OutOfMemory& refusal) noexcept;
inline constinit std::atomic<RefusalHook> g_refusal_hook{nullptr};

}  // namespace berth::internal::memory

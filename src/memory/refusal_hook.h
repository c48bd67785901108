// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "berth/memory/out_of_memory.h"

// What stands higher, and has a part in a refusal. Both are called on the thread that asked, with no lock held, and there is one of each for the process.
namespace berth::internal::memory {

// Gives back what is held for others that may not need it any more. True: some was, and the request is tried again.
using ReclaimHook = bool (*)() noexcept;
inline constinit std::atomic<ReclaimHook> g_reclaim_hook{nullptr};

// Sees the state of the process just before OutOfMemory is thrown.
using RefusalHook = void (*)(const OutOfMemory& refusal) noexcept;
inline constinit std::atomic<RefusalHook> g_refusal_hook{nullptr};

}  // namespace berth::internal::memory

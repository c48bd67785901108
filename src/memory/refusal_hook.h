// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "berth/memory/out_of_memory.h"

// Whoever wants to see the state of the process when memory is refused, before anyone gives any back: called just before OutOfMemory is thrown,
// on the thread that asked, with no lock held. One for the process.
namespace berth {

using RefusalHook = void (*)(const OutOfMemory& refusal) noexcept;
inline constinit std::atomic<RefusalHook> g_refusal_hook{nullptr};

}  // namespace berth

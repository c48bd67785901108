// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

#include "berth/copy/threads.h"

// The thread pool for large copies. Work is a number of items that may run in any order and concurrently; the
// caller takes items too, and returns when all are done. Any thread may call; all callers use the same workers.
// The items run under the caller's bus guard, but do not touch memory under it by themselves (os/memory/bus_guard.h).
// Workers are started when first needed, sleep between jobs, and are never joined at exit; a forked child
// starts its own.
namespace berth::internal::copy {

namespace workers {

using Run = void (*)(void* context, std::size_t item) noexcept;

// Calls run(context, i) once for each i < items, on at most `threads` threads, including this one; returns when
// all calls have returned.
void run(std::size_t items, int threads, Run run, void* context) noexcept;

}  // namespace workers

// The same for any callable. It must not throw.
template <class Body>
void run_in_parallel(std::size_t items, int threads, Body&& body) noexcept {
  workers::run(
      items, threads, [](void* context, std::size_t item) noexcept { (*static_cast<std::remove_reference_t<Body>*>(context))(item); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace berth::internal::copy

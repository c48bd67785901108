// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

#include "berth/copy/threads.h"

// The threads that help with large copies. Work is a number of items that may run in any order and at the same time; the caller takes items
// too, and goes home when all are done. Several callers share the workers. Workers start when first needed, sleep between jobs, and are
// never waited for at exit; a forked child starts its own.
namespace berth::internal::copy {

namespace workers {

using Run = void (*)(void* context, std::size_t item) noexcept;

// Calls run(context, i) once for each i < items, on at most `threads` threads, this one included; returns when all calls have returned.
void run(std::size_t items, int threads, Run run, void* context) noexcept;

}  // namespace workers

// The same for anything that can be called. It must not throw.
template <class Body>
void run_in_parallel(std::size_t items, int threads, Body&& body) noexcept {
  workers::run(
      items, threads, [](void* context, std::size_t item) noexcept { (*static_cast<std::remove_reference_t<Body>*>(context))(item); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace berth::internal::copy

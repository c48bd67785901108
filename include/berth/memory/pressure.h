// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "berth/device/device.h"
#include "berth/record/tag.h"

// The callback that runs before memory is refused, in which a program can drop caches of its own, evict a
// tenant, or wait for a batch to finish.
//
//     gpu->on_pressure([&](const Pressure& p) { return kv_cache.evict(p.requested_bytes) > 0; });
//
// The callback runs on the thread whose request is about to be refused, after everything that the allocator can
// do by itself, with no lock of berth held: it may free blocks, trim, read statistics, and allocate. If it
// returns true the request is retried, at most kMostPressureCalls times; if false the request is refused.
// Requests made inside a callback never invoke one, so that it cannot recurse. An exception that it throws
// leaves `allocate` and `try_allocate` nested (std::rethrow_if_nested) in an Error with the code
// `callback_failed`; nothing is allocated then, and the allocator is as the callback left it.
namespace berth {

struct Pressure {
  Device device;
  std::uint64_t allocator_id = 0;   // the allocator that was called
  std::size_t requested_bytes = 0;  // by the request that is about to be refused
  std::size_t alignment = 0;
  Tag tag;
  unsigned call = 1;  // 1 for the first call for this request
};

using PressureCallback = std::function<bool(const Pressure&)>;

inline constexpr unsigned kMostPressureCalls = 4;  // for one request

}  // namespace berth

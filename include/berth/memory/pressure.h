// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "berth/device/device.h"
#include "berth/record/tag.h"

// What a program may do before memory is refused: drop caches of its own, evict a tenant, wait for a batch to finish.
//
//     gpu->on_pressure([&](const Pressure& p) { return kv_cache.evict(p.requested_bytes) > 0; });
//
// The callback runs on the thread whose request is about to be refused, after everything the allocator can do by itself, with no lock of
// berth held: it may free blocks, trim, read statistics, and allocate. When it returns true the request is tried again, at most
// kMostPressureCalls times; with false it is refused. Requests made inside a callback never call one, so that it cannot call itself.
// What it throws comes out of `allocate` and `try_allocate` as an Error with the code `callback_failed`, in which it is nested
// (std::rethrow_if_nested); nothing is allocated then, and the allocator is as the callback left it.
namespace berth {

struct Pressure {
  Device device;
  std::uint64_t allocator_id = 0;   // the allocator that was asked
  std::size_t requested_bytes = 0;  // what is about to be refused
  std::size_t alignment = 0;
  Tag tag;
  unsigned call = 1;  // the how manieth for this request
};

using PressureCallback = std::function<bool(const Pressure&)>;

inline constexpr unsigned kMostPressureCalls = 4;  // for one request

}  // namespace berth

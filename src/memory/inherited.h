// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/device/backend.h"
#include "os/process/fork.h"

// What a forked child may do with the allocators that it has inherited. Any thread.
namespace berth::internal::memory {

// Whether an object of that origin must leave its device alone: this process inherited it, on a device that
// does not survive a fork.
inline bool is_inherited(const os::Origin& origin, const Backend& backend) noexcept {
  return origin.is_inherited() && !backend.properties().abilities.fork_safe;
}

// Whether a fork must wait for what is under way on a device (os::NoFork): a child goes on using it.
inline os::NoFork::Needed no_fork_during_calls(const Backend& backend) noexcept {
  return os::NoFork::Needed{backend.properties().abilities.fork_safe};
}

}  // namespace berth::internal::memory

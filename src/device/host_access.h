// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/device/backend.h"
#include "berth/device/registry.h"

// Whether the host reads and writes the device's memory by its address. Any thread.
namespace berth::internal::device {

inline bool is_host(const Backend& backend) noexcept { return backend.properties().abilities.host_access; }

// False for a device that is not there.
inline bool is_host(Device device) noexcept {
  const Backend* const found = find_backend(device);
  return found != nullptr && is_host(*found);
}

}  // namespace berth::internal::device

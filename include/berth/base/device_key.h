// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// A device as a bare number, for the levels below device/ that name one without knowing what it is (records).
// `Device::from_key` in device/device.h turns it back into something that prints.
namespace berth {

struct DeviceKey {
  std::uint16_t kind = 0;  // 0 is the host CPU
  std::uint16_t index = 0;

  friend constexpr bool operator==(DeviceKey, DeviceKey) = default;
};

}  // namespace berth

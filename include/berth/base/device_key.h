// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// A device as a pair of plain numbers, for the layers below device/ (records), which name devices without
// depending on them. `Device::from_key` in device/device.h turns a key back into a printable Device.
namespace berth {

struct DeviceKey {
  std::uint16_t kind = 0;  // 0 is the host CPU
  std::uint16_t index = 0;

  friend constexpr bool operator==(DeviceKey, DeviceKey) = default;
};

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "berth/base/device_key.h"
#include "berth/export.h"

// Devices, which have memory. A `Device` is a small value that names one by a kind and an index. Any thread.
//
//     Device d = "cuda:1";   d.kind_name() == "cuda";   d.index() == 1;   d.to_string() == "cuda:1"
//     Device("cpu") == Device("cpu:0")
//
// Naming a device does not touch it: "cuda:7" is a valid name on every machine. Whether the device exists is
// checked at its first use (device/registry.h). Only the kind must be known, so that a typo is found at once.
namespace berth {

class BERTH_EXPORT Device {
 public:
  constexpr Device() noexcept = default;  // cpu:0

  // Reads "kind" or "kind:index". Throws DeviceError(no_such_device) for an unknown kind, listing the known
  // ones, and for an index that is not a number from 0 to 65535.
  Device(std::string_view text);
  Device(const char* text) : Device(text == nullptr ? std::string_view() : std::string_view(text)) {}
  Device(const std::string& text) : Device(std::string_view(text)) {}

  // REQUIRES: the kind is known.
  Device(std::string_view kind, int index);

  static constexpr Device from_key(DeviceKey key) noexcept { return Device(key); }

  std::string_view kind_name() const noexcept;
  constexpr int index() const noexcept { return key_.index; }
  constexpr DeviceKey key() const noexcept { return key_; }
  std::string to_string() const;

  friend constexpr bool operator==(Device, Device) = default;

 private:
  explicit constexpr Device(DeviceKey key) noexcept : key_(key) {}

  DeviceKey key_;
};

}  // namespace berth

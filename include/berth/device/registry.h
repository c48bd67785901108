// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device.h"
#include "berth/export.h"

// The registry of device kinds, and the backend of each device. Built-in kinds: cpu, pinned, shared, sim, cuda.
// A backend is made when its device is first used and lives until the process ends; nothing here is ever
// destroyed, so the order of static destruction cannot matter. Any thread.
namespace berth {

class Backend;         // device/backend.h
class BackendFactory;  //

// Adds a kind. The name consists of at most 32 lower-case letters, digits and '_', and starts with a letter.
// Throws ArgumentError when the name is malformed or taken.
BERTH_EXPORT void register_backend(std::string_view kind, std::unique_ptr<BackendFactory> factory);

// The backend of a device. Throws DeviceError: no_such_device{index, count} when the index is past the last
// device, device_unavailable with the reason when this build or this machine has no device of the kind.
BERTH_EXPORT Backend& backend(Device device);

// The same without exceptions: nullptr when the device does not exist.
BERTH_EXPORT Backend* find_backend(Device device) noexcept;

struct KindInfo {
  std::string name;
  int count = 0;
  std::string unavailable_reason;  // empty when count > 0
};
BERTH_EXPORT std::vector<KindInfo> device_kinds();

// All devices of this machine, grouped by kind.
BERTH_EXPORT std::vector<Device> all_devices();

}  // namespace berth

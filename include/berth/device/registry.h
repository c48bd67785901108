// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/backend.h"
#include "berth/export.h"

// Which kinds of device there are, and the backend behind each device. Built-in kinds: cpu, pinned, shared, sim, cuda. A backend is made when
// its device is first used and lives until the process ends; nothing here is ever destroyed, so the order of shutdown cannot matter.
// Any thread.
namespace berth {

// Adds a kind. The name is lower-case letters, digits and '_', starting with a letter, at most 32 of them.
// Throws ArgumentError when it is not, or is taken.
BERTH_EXPORT void register_backend(std::string_view kind, std::unique_ptr<BackendFactory> factory);

// The backend of a device. Throws DeviceError: no_such_device{index, count} past the last one, device_unavailable with the
// reason when this build or this machine has none of the kind.
BERTH_EXPORT Backend& backend(Device device);

// The same without exceptions, for questions: nullptr when the device is not there.
BERTH_EXPORT Backend* find_backend(Device device) noexcept;

struct KindInfo {
  std::string name;
  int count = 0;
  std::string unavailable_reason;  // empty when count > 0
};
BERTH_EXPORT std::vector<KindInfo> device_kinds();

// Every device of this machine, kind by kind.
BERTH_EXPORT std::vector<Device> all_devices();

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The allocator a device uses when nobody names one. It is made when it is first asked for, once per device. Which strategy it is can be
// chosen with BERTH_<KIND>_ALLOCATOR (BERTH_CPU_ALLOCATOR=direct, BERTH_SIM_ALLOCATOR=arena:64MiB) or replaced in code:
//
//     set_default_allocator("cpu", limit(direct("cpu"), 2_GiB));
//
// With BERTH_CHECK=1 every one that is made, not one that is set, is wrapped in check (memory/check.h), and what is then in quarantine is
// looked at once more when the process ends.
namespace berth {

// Throws DeviceError when the device is not there, ArgumentError when a variable makes no sense, saying what would.
// The reference is good for ever; what it refers to does not change when the default is replaced.
BERTH_EXPORT const std::shared_ptr<Allocator>& default_allocator(Device device);

// Any thread, at any time. The allocator must be one for that device, else ArgumentError. The one it replaces gives back what it has
// cached and lives on, idle, until the process ends: other threads may be using it.
BERTH_EXPORT void set_default_allocator(Device device, std::shared_ptr<Allocator> allocator);

// Makes an allocator from text: a strategy's name and, behind a colon, its option: "direct", "arena:64MiB".
BERTH_EXPORT std::shared_ptr<Allocator> make_allocator(std::string_view text, Device device);

// The names make_allocator knows, in order.
BERTH_EXPORT std::vector<std::string> allocator_names();

}  // namespace berth

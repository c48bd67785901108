// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/device/device.h"
#include "driver_costs.h"

// A device without memory, whose address ranges, pieces and streams work as a CUDA device's do: it counts the calls
// that a driver would get. Work takes as long as a number of trace events. One at a time, for one thread.
namespace berth::bench {

struct PieceDeviceOptions {
  std::size_t longest_piece = 0;    // bytes, a multiple of 2 MiB
  std::size_t capacity = SIZE_MAX;  // bytes
  std::uint64_t lag = 0;            // trace events until the work that a stream has is done
};

// The device, as it is from now on. REQUIRES: nothing uses it.
Device piece_device(const PieceDeviceOptions& options);

// A trace event has passed.
void pass_event() noexcept;

const DriverCalls& driver_calls() noexcept;
std::uint64_t driver_waits() noexcept;  // for events that were not done

}  // namespace berth::bench

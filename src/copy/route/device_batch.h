// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "berth/device/backend.h"
#include "copy/validate.h"

// Batched transfers: the copies of a batch that are runs of bytes of one dtype on both sides, and that one
// device can run, are submitted together. Any thread.
namespace berth::internal::copy {

// How one pair of a batch is run.
enum class BatchWay : unsigned char {
  alone,   // by its own route
  direct,  // as one of many transfers in a device call
  packed,  // the same, through a staging buffer for many transfers: small copies of pageable host memory, which
           // would otherwise be staged one by one
};
BatchWay batch_way(const ValidatedPair& pair) noexcept;

// Run transfers of one pair of devices, all of them `direct`, or all `packed`. Throws DeviceError, OutOfMemory.
void run_direct(std::span<const Transfer> transfers, const ValidatedPair& pair);
void run_packed(std::span<const Transfer> transfers, const ValidatedPair& pair);

}  // namespace berth::internal::copy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "berth/device/backend.h"
#include "copy/validate.h"

// The part of a batch that is runs of bytes on both sides, of one dtype, and that one device can do: asked for together.
namespace berth::internal::copy {

// How one pair of a batch is run.
enum class BatchWay : unsigned char {
  alone,   // by its own route
  direct,  // as one of many transfers
  packed,  // the same, through staging that many of them share: a small one of host memory that the device would have staged alone
};
BatchWay batch_way(const CheckedPair& pair) noexcept;

// Transfers of one pair of devices, all of them `direct`, or all `packed`. Throws DeviceError, OutOfMemory.
void run_direct(std::span<const Transfer> transfers, const CheckedPair& pair);
void run_packed(std::span<const Transfer> transfers, const CheckedPair& pair);

}  // namespace berth::internal::copy

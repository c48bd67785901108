// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/result.h"
#include "berth/device/stream.h"

// Streams of host devices: each has a worker thread that takes items from a queue. Any thread.
namespace berth::internal::device {

Result<Stream> make_host_stream(Device device) noexcept;

}  // namespace berth::internal::device

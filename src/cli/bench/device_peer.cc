// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/device_peer.h"

#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "berth/storage/create.h"

namespace berth::internal::cli {

namespace {

Storage make_bytes(Device device, std::size_t bytes) {
  const bool host = backend(device).properties().abilities.host_access;
  return full({bytes}, 1, DType::u8, host ? Device("pinned") : device);
}

}  // namespace

DevicePeer::DevicePeer(const BenchCase& one, std::size_t bytes)
    : source_(make_bytes(one.source_device, bytes / 2)), target_(make_bytes(one.target_device, bytes / 2)) {}

void DevicePeer::run() const { target_.copy_from(source_); }

}  // namespace berth::internal::cli

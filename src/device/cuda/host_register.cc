// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/host_register.h"

#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "device/cuda/cuda_backend.h"
#include "device/cuda/host_locks.h"

namespace berth::internal::device::cuda {

namespace {

CudaBackend* first_device() noexcept {
  Backend* const found = driver_state().devices > 0 ? find_backend(Device("cuda", 0)) : nullptr;
  return dynamic_cast<CudaBackend*>(found);
}

}  // namespace

bool can_register_host() noexcept {
  const CudaBackend* const device = first_device();
  return device != nullptr && device->is_alive();
}

Status register_host(void* address, std::size_t bytes) noexcept {
  CudaBackend* const device = first_device();
  if (device == nullptr) return Failure{ErrorCode::device_unavailable, 0, "there is no CUDA device to lock memory for"};
  const Scope scope(device->context());
  if (!scope) return scope.failure();
  if (!note_host_lock(address, bytes)) return Failure{ErrorCode::out_of_memory, 0, "no heap for the table of page-locked memory"};
  const Status locked =
      BERTH_CUDA_CALL(device->context(), cuMemHostRegister, address, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (!locked) forget_host_lock(address);
  return locked;
}

Status unregister_host(void* address) noexcept {
  forget_host_lock(address);
  CudaBackend* const device = first_device();
  if (device == nullptr) return Failure{ErrorCode::device_unavailable, 0, "there is no CUDA device that memory was locked for"};
  const Scope scope(device->context());
  if (!scope) return scope.failure();
  return BERTH_CUDA_CALL(device->context(), cuMemHostUnregister, address);
}

}  // namespace berth::internal::device::cuda

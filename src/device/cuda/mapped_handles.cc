// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/mapped_handles.h"
#include "os/file/shared_file.h"

namespace berth::internal::device::cuda {

MappedHandles::~MappedHandles() {
  CudaContext& context = backend_.context();
  const Scope scope(context);
  if (!scope) return;  // the device is lost, or was inherited by fork
  CUdeviceptr at = address_;
  for (std::size_t i = 0; i < mapped_; at += handles_[i++].bytes) (void)BERTH_CUDA_CALL(context, cuMemUnmap, at, handles_[i].bytes).ok();
  if (is_reserved_) (void)BERTH_CUDA_CALL(context, cuMemAddressFree, address_, bytes_).ok();
  for (const Handle& handle : handles_) (void)BERTH_CUDA_CALL(context, cuMemRelease, handle.handle).ok();
}

Status MappedHandles::add_new(std::size_t bytes) {
  const CUmemAllocationProp prop = backend_.memory().properties();
  Handle& made = handles_.emplace_back();
  made.bytes = bytes;
  if (const Status done = BERTH_CUDA_CALL(backend_.context(), cuMemCreate, &made.handle, bytes, &prop, 0); !done) {
    handles_.pop_back();
    return done;
  }
  bytes_ += bytes;
  return {};
}

Status MappedHandles::add_imported(os::Descriptor descriptor, std::size_t bytes) {
  // On Linux the driver takes the file descriptor itself in place of a pointer to a handle.
  void* const number = reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor.number()));
  Handle& made = handles_.emplace_back();
  made.bytes = bytes;
  if (const Status done = BERTH_CUDA_CALL(backend_.context(), cuMemImportFromShareableHandle, &made.handle, number,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
      !done) {
    handles_.pop_back();
    return done;
  }
  made.imported.set(std::move(descriptor));
  bytes_ += bytes;
  return {};
}

Status MappedHandles::map() noexcept {
  CudaContext& context = backend_.context();
  if (const Status done = BERTH_CUDA_CALL(context, cuMemAddressReserve, &address_, bytes_, backend_.memory().unit_bytes(), 0, 0); !done)
    return done;
  is_reserved_ = true;
  CUdeviceptr at = address_;
  for (const Handle& handle : handles_) {
    if (const Status done = BERTH_CUDA_CALL(context, cuMemMap, at, handle.bytes, 0, handle.handle, 0); !done) return done;
    ++mapped_;
    at += handle.bytes;
  }
  const std::span<const CUmemAccessDesc> access = backend_.memory().access();
  return BERTH_CUDA_CALL(context, cuMemSetAccess, address_, bytes_, access.data(), access.size());
}

Result<os::Descriptor> MappedHandles::export_handle(std::size_t index) const noexcept {
  const Handle& handle = handles_[index];
  // The driver cannot export an imported handle; its original descriptor is as good.
  return handle.imported.number() >= 0 ? os::duplicate(handle.imported.number()) : cuda::export_handle(backend_.context(), handle.handle);
}

}  // namespace berth::internal::device::cuda

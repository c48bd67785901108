// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "device/cuda/cuda_backend.h"
#include "os/file/descriptor.h"

// RAII mapping of a device's physical memory: one or more handles, mapped contiguously at a new address. For
// memory that several processes share; the pool's is in CudaMemory. One thread at a time. REQUIRES, for each
// Status: the context is current (Scope).
namespace berth::internal::device::cuda {

class MappedHandles {
 public:
  explicit MappedHandles(CudaBackend& backend) noexcept : backend_(backend) {}
  ~MappedHandles();
  MappedHandles(const MappedHandles&) = delete;
  MappedHandles& operator=(const MappedHandles&) = delete;

  // Adds memory to be mapped, after what was added before. Throws bad_alloc. REQUIRES: whole units.
  Status add_new(std::size_t bytes);
  Status add_imported(os::Descriptor descriptor, std::size_t bytes);
  Status map() noexcept;

  Result<os::Descriptor> export_handle(std::size_t index) const noexcept;  // a new descriptor

  CudaBackend& backend() const noexcept { return backend_; }
  std::size_t handles() const noexcept { return handles_.size(); }
  CUdeviceptr address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Handle {
    CUmemGenericAllocationHandle handle = 0;
    std::size_t bytes = 0;
    os::OwnDescriptor imported = {};  // its descriptor, if it is from another process
  };

  CudaBackend& backend_;
  std::deque<Handle> handles_;  // a deque: entries do not move
  std::size_t mapped_ = 0;      // number of mapped handles
  CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
  bool is_reserved_ = false;
};

}  // namespace berth::internal::device::cuda

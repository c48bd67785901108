// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "device/cuda/cuda_backend.h"
#include "os/file/descriptor.h"

// Physical memory of a device, one handle or several side by side, at an address of its own. What was done is undone with it. For memory that several
// processes have; the pool's is in CudaMemory. REQUIRES, for each Status: the context is current (Scope).
namespace berth::internal::device::cuda {

class MappedHandles {
 public:
  explicit MappedHandles(CudaBackend& backend) noexcept : backend_(backend) {}
  ~MappedHandles();
  MappedHandles(const MappedHandles&) = delete;
  MappedHandles& operator=(const MappedHandles&) = delete;

  // Memory to be mapped, behind what was added before. REQUIRES: whole units; throws bad_alloc.
  Status add_new(std::size_t bytes);
  Status add_imported(os::Descriptor descriptor, std::size_t bytes);
  Status map() noexcept;

  Result<os::Descriptor> export_handle(std::size_t index) const noexcept;  // a new one

  CudaBackend& backend() const noexcept { return backend_; }
  std::size_t handles() const noexcept { return handles_.size(); }
  CUdeviceptr address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Handle {
    CUmemGenericAllocationHandle handle = 0;
    std::size_t bytes = 0;
    os::OwnDescriptor imported = {};  // what it came from, if it is of another process
  };

  CudaBackend& backend_;
  std::deque<Handle> handles_;  // which do not move
  std::size_t mapped_ = 0;      // how many
  CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
  bool is_reserved_ = false;
};

}  // namespace berth::internal::device::cuda

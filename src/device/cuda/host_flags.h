// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "device/cuda/cuda_context.h"

// Words that the host counts up and a stream waits for: how work of a stream comes after a host function. They are page-locked memory that
// the device reads. A word is lent to one stream at a time and only ever grows, from one stream to the next too, so that a device
// that looks late still finds what it waits for.
namespace berth::internal::device::cuda {

class HostFlags {
 public:
  struct Flag {
    std::atomic<std::uint32_t>* host = nullptr;
    CUdeviceptr device = 0;
  };

  explicit HostFlags(CudaContext& context) noexcept : context_(context) {}

  // REQUIRES: the context is current.
  Result<Flag> borrow() noexcept;
  void give_back(const Flag& flag) noexcept;  // REQUIRES: nobody will count it up any more

 private:
  Status make_more() noexcept;

  CudaContext& context_;
  os::Mutex mutex_;
  std::vector<Flag> free_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::internal::device::cuda

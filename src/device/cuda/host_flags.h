// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "device/cuda/cuda_context.h"

// Counters that the host increments and a stream waits for, to order a stream's work after a host function.
// They are in page-locked memory that the device reads. A counter is lent to one stream at a time and only ever
// grows, also across streams, so that a late read by the device still sees what it waits for. Any thread.
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
  void give_back(const Flag& flag) noexcept;  // REQUIRES: no further increments

 private:
  Status make_more() noexcept;

  CudaContext& context_;
  os::Mutex mutex_;
  std::vector<Flag> free_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::internal::device::cuda

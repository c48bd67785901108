// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/host_flags.h"

#include <new>

namespace berth::internal::device::cuda {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kApart = 64;  // one cache line each

}  // namespace

Result<HostFlags::Flag> HostFlags::borrow() noexcept {
  for (int tries = 0; tries < 2; ++tries) {
    {
      const os::Lock lock(mutex_);
      if (!free_.empty()) {
        const Flag flag = free_.back();
        free_.pop_back();
        return flag;
      }
    }
    if (const Status made = make_more(); !made) return made.failure();
  }
  return Failure{ErrorCode::busy, 0, "other threads took every flag for host functions"};
}

// A page is never freed: the device may still read it for streams that are destroyed.
Status HostFlags::make_more() noexcept {
  void* page = nullptr;
  CUdeviceptr device = 0;
  if (const Status made = BERTH_CUDA_CALL(context_, cuMemHostAlloc, &page, kPage, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
      !made)
    return made;
  if (const Status found = BERTH_CUDA_CALL(context_, cuMemHostGetDevicePointer, &device, page, 0); !found) {
    (void)BERTH_CUDA_CALL(context_, cuMemFreeHost, page).ok();
    return found;
  }
  try {
    const os::Lock lock(mutex_);
    free_.reserve(free_.size() + kPage / kApart);
    for (std::size_t at = 0; at < kPage; at += kApart)
      free_.push_back({new (static_cast<std::byte*>(page) + at) std::atomic<std::uint32_t>(0), device + at});
    return {};
  } catch (const std::bad_alloc&) {
  }
  (void)BERTH_CUDA_CALL(context_, cuMemFreeHost, page).ok();
  return Failure{ErrorCode::out_of_memory, 0, "no heap for flags"};
}

void HostFlags::give_back(const Flag& flag) noexcept {
  try {
    const os::Lock lock(mutex_);
    free_.push_back(flag);
  } catch (const std::bad_alloc&) {  // leak it
  }
}

}  // namespace berth::internal::device::cuda

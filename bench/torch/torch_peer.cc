// SPDX-License-Identifier: Apache-2.0
#include "torch_peer.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

namespace berth::bench {

namespace allocator = c10::cuda::CUDACachingAllocator;

TorchCachingPeer::TorchCachingPeer() {
  allocator::init(c10::cuda::device_count());
  clear();
}

void* TorchCachingPeer::take(std::size_t bytes) { return allocator::raw_alloc(bytes); }
void TorchCachingPeer::give(void* block) { allocator::raw_delete(block); }

void TorchCachingPeer::clear() {
  allocator::emptyCache();
  allocator::resetPeakStats(0);
}

std::size_t TorchCachingPeer::peak_reserved() const {
  return static_cast<std::size_t>(allocator::getDeviceStats(0).reserved_bytes[0].peak);
}

void* TorchCachingPeer::pin(std::size_t bytes) {
  void* block = nullptr;
  return cudaHostAlloc(&block, bytes, cudaHostAllocDefault) == cudaSuccess ? block : nullptr;
}
void TorchCachingPeer::unpin(void* block) { (void)cudaFreeHost(block); }

}  // namespace berth::bench

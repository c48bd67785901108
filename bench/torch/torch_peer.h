// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// PyTorch's CUDA caching allocator, isolated so that its headers and berth's are never included together. Any
// thread.
namespace berth::bench {

class TorchCachingPeer {
 public:
  TorchCachingPeer();  // device 0, current stream
  void* take(std::size_t bytes);
  void give(void* block);

  void clear();  // releases cached memory to the device, and resets the peaks
  std::size_t peak_reserved() const;

  // Page-locked memory of the CUDA runtime, the baseline for pinning. nullptr: out of memory.
  static void* pin(std::size_t bytes);
  static void unpin(void* block);
};

}  // namespace berth::bench

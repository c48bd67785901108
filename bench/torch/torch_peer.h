// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// PyTorch's CUDA caching allocator, kept apart: its headers see none of ours, and the other way round.
namespace berth::bench {

class TorchPeer {
 public:
  TorchPeer();  // on device 0, the stream that is current
  void* take(std::size_t bytes);
  void give(void* block);

  void clear();  // gives cached memory back to the device, and forgets the peaks
  std::size_t peak_reserved() const;

  // The CUDA runtime's page-locked memory, beside which pinning is measured. nullptr: it has none left.
  static void* pin(std::size_t bytes);
  static void unpin(void* block);
};

}  // namespace berth::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/device/device.h"
#include "berth/device/stream.h"
#include "berth/record/site.h"
#include "berth/record/tag.h"

// The request to an allocator, and the block that it returns. Both are plain values.
namespace berth {

// Everything an allocation can depend on, in one struct, so that no adaptor can forget to pass a part of it on.
struct Request {
  std::size_t bytes = 0;
  std::size_t alignment = 0;       // a power of two; 0: the device's default
  StreamRef stream = {};           // the stream that uses the block first
  Tag tag = {};                    // none: the tag of the thread's innermost TagScope
  Site site = {};                  // the call site, if known
  bool zeroed = false;             // all bytes are zero, to work in `stream` order; see AllocationOptions
  std::uint64_t allocator_id = 0;  // set by the allocator that is called: the block must be freed through it
};

// Memory that an allocator handed out. A block does not free itself (a Buffer does): pass it, unchanged, to the
// deallocate of the allocator that returned it. The block of zero bytes has a null address, and freeing it does
// nothing. Block has no member functions such as used_on, because it would need a pointer to its allocator,
// which nothing would keep alive: call `Allocator::used_on` or, through the handles that keep the allocator
// alive, `Buffer::used_on` or `Storage::used_on`.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;  // as requested
  std::size_t alignment = 0;
  Device device = {};
  Tag tag = {};
  std::uint64_t stream_id = 0;  // of the request
  std::uint64_t serial = 0;     // unique among the allocator's blocks; 0: unknown, see Allocator::block_at
  std::uint64_t allocator_id = 0;
  std::uint64_t cookie = 0;  // private to the allocator, such as the position of the block's entry

  explicit operator bool() const noexcept { return data != nullptr; }
  friend bool operator==(const Block&, const Block&) = default;
};

}  // namespace berth

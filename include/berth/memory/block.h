// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/device/device.h"
#include "berth/device/stream.h"
#include "berth/record/site.h"
#include "berth/record/tag.h"

// What is asked of an allocator, and what it answers. Both are plain values.
namespace berth {

// Everything an allocation can depend on, in one struct, so that no adaptor can forget to pass a part of it on.
struct Request {
  std::size_t bytes = 0;
  std::size_t alignment = 0;       // a power of two; 0: the device's default
  StreamRef stream = {};           // the stream that will use the block first
  Tag tag = {};                    // none: the tag of the thread's innermost TagScope
  Site site = {};                  // where it is asked for, when known
  std::uint64_t allocator_id = 0;  // filled in by the allocator that is asked: the one the block must come back to
};

// A piece of memory that an allocator handed out. It does not free itself (a Buffer does): pass it, unchanged, to the deallocate of
// the allocator it came from. The block of zero bytes has a null address, and freeing it does nothing. It has no functions of its own, such
// as one that says that another stream uses it: for that it would have to carry a pointer to its allocator, which nothing would keep
// alive. `Allocator::used_on` and, for those who do keep the allocator alive, `Buffer::used_on` and `Storage::used_on` say it.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;  // as requested
  std::size_t alignment = 0;
  Device device = {};
  Tag tag = {};
  std::uint64_t stream_id = 0;  // of the request
  std::uint64_t serial = 0;     // different for every block of an allocator; 0: unknown, see Allocator::block_at
  std::uint64_t allocator_id = 0;
  std::uint64_t cookie = 0;  // where the allocator keeps what it knows of the block: its own business

  explicit operator bool() const noexcept { return data != nullptr; }
  friend bool operator==(const Block&, const Block&) = default;
};

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The strategy for memory that is used and discarded together: a bump allocator over one range, which is cut
// from front to back.
//
//     auto scratch = arena("cpu", 64_MiB);
//     ArenaMark before = scratch->mark();
//     ... empty({n}, DType::f32, scratch) ...
//     scratch->reset(before);           // everything since is free again, in constant time
//
// Freeing a block marks it dead; its bytes are reused only after a reset. The address range is reserved at
// once; memory is committed as the arena grows, and stays committed until a trim, or a deallocate_now of the
// last live block, which return what is behind the last live block. After a reset, a request on another stream
// than those that used the reset memory waits for them, unless its stream is known to be ordered after their
// work. Any thread may call anything.
namespace berth {

// A position in an arena to reset to. The default is its start.
struct ArenaMark {
  std::size_t offset = 0;
  std::uint64_t blocks = 0;
  std::uint64_t last_serial = 0;  // of the block before the mark
};

class BERTH_EXPORT Arena : public Allocator {
 public:
  using Allocator::Allocator;

  virtual ArenaMark mark() const = 0;

  // Discards every block allocated since the mark (or since the start). Throws AccessError(busy{blocks}) when
  // one of them has not been freed, and ArgumentError when the mark is not of this arena, or the arena was
  // meanwhile reset to a position before the mark; then nothing has changed.
  virtual void reset(ArenaMark mark) = 0;
  void reset() { reset({}); }
};

// Throws ArgumentError for zero bytes, OutOfMemory when the range cannot be reserved.
BERTH_EXPORT std::shared_ptr<Arena> arena(Device device, std::size_t capacity_bytes);

}  // namespace berth

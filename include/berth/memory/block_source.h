// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "berth/base/result.h"
#include "berth/export.h"
#include "berth/memory/block.h"
#include "berth/memory/out_of_memory.h"

// The inner interface of allocators: what a strategy implements, and what an adaptor calls on the allocator it wraps. Programs that allocate
// use the public face, Allocator (memory/allocator.h), which calls these, makes records, and turns failures into exceptions. Nothing here
// makes records or throws; a free that is refused is reported by the public face. Any thread.
namespace berth {

struct Misuse;
struct Snapshot;

// What an allocator finds when a block comes in. Anything but `ok` has changed nothing.
enum class BlockVerdict : unsigned char {
  ok,
  double_free,
  foreign,  // it is not this allocator's, or was changed
  size_mismatch,
  reentered,  // the call interrupted the same allocator on the same thread
};

class BERTH_EXPORT BlockSource {
 public:
  virtual ~BlockSource();

  enum class When : unsigned char { later, now };

  // Adds the address, the serial and the cookie to a block that describes the request otherwise; what it holds after a failure has no
  // meaning. REQUIRES: request.bytes > 0, its alignment is set and legal, its tag and allocator are final.
  virtual Status obtain(const Request& request, Block& block) noexcept = 0;

  // Anything but `ok` has changed nothing. On `ok`, and if `known` is not null, that receives the block as it was handed out: what
  // came in may have been made by block_at, and lack most of it.
  virtual BlockVerdict give_back(const Block& block, When when, Block* known) noexcept = 0;

  // Gives the block `bytes` bytes where it is, and a new serial; false, with nothing changed, when that cannot be, or it is not the block it
  // says. REQUIRES: block.serial != 0, block.bytes < bytes <= kMaxBytes.
  virtual bool grow(Block& block, std::size_t bytes) noexcept = 0;

  // Keeps the promise of `used_on`. Anything but `ok` has changed nothing; a Failure means that there is no heap to remember it.
  virtual Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept = 0;

  virtual void begin_hold() noexcept = 0;
  virtual void end_hold() noexcept = 0;

  // Adds what this allocator knows about a refused request, but its holders. Each layer recognises its own refusal by Failure::cause.
  virtual void explain(const Failure& failure, OutOfMemoryReport& report) const = 0;

  // Fills in what this allocator knows of its range and its blocks, with the numbers of tags (Tag::id) where a snapshot has indices; without a
  // range, in any order, with addresses where it has offsets. By default nothing: then a snapshot has no more than stats().
  virtual void list_blocks(Snapshot& snapshot) const;

  // Adds what this allocator knows about a block whose free was refused: where it was allocated, and freed first. By default nothing.
  virtual void explain_free(const Block& block, Misuse& misuse) const noexcept;

 protected:
  BlockSource() noexcept = default;
  BlockSource(const BlockSource&) = delete;
  BlockSource& operator=(const BlockSource&) = delete;
};

}  // namespace berth

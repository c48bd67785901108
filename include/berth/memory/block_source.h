// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "berth/base/result.h"
#include "berth/export.h"
#include "berth/memory/block.h"
#include "berth/memory/out_of_memory.h"

// The inner interface of allocators: what a strategy implements, and what an adaptor calls on the allocator it
// wraps. Programs that allocate use the public face, Allocator (memory/allocator.h), which calls these
// functions, makes records, and turns failures into exceptions. Nothing here makes records or throws; the
// public face reports a free that is refused. Any thread.
namespace berth {

struct Misuse;
struct Snapshot;

// What an allocator finds when a block is passed to it. For any verdict but `ok` nothing has changed.
enum class BlockVerdict : unsigned char {
  ok,
  double_free,
  foreign,  // not this allocator's, or modified
  size_mismatch,
  reentered,  // the call interrupted the same allocator on the same thread
};

class BERTH_EXPORT BlockSource {
 public:
  virtual ~BlockSource();

  enum class When : unsigned char { later, now };

  // Sets the address, the serial and the cookie of a block whose other fields already describe the request;
  // after a failure the contents of these are unspecified. REQUIRES: request.bytes > 0, its alignment is set
  // and legal, its tag and allocator are final.
  virtual Status obtain(const Request& request, Block& block) noexcept = 0;

  // For any verdict but `ok` nothing has changed. On `ok`, `known` (if not null) receives the block as it was
  // handed out: the block that was passed in may come from block_at, and lack most fields.
  virtual BlockVerdict give_back(const Block& block, When when, Block* known) noexcept = 0;

  // Grows the block in place to `bytes` bytes, with a new serial; returns false, with nothing changed, if that
  // is not possible or the block does not match its entry. REQUIRES: block.serial != 0, block.bytes < bytes <=
  // kMaxBytes.
  virtual bool grow(Block& block, std::size_t bytes) noexcept = 0;

  // Implements `used_on`. For any verdict but `ok` nothing has changed; a Failure means that there is no heap
  // memory to remember the stream.
  virtual Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept = 0;

  // Implements `block_at(data)`: completes a block of which the address and the allocator are set. False: no live block
  // of that allocator begins at the address, and the block is unspecified. Failure(unsupported), the default: this
  // allocator does not know its blocks by address.
  virtual Result<bool> locate(Block& block) noexcept;

  virtual void begin_hold() noexcept = 0;
  virtual void end_hold() noexcept = 0;

  // Adds what this allocator knows about a refused request, except its holders. Each layer recognises its own
  // refusal by Failure::cause.
  virtual void explain(const Failure& failure, OutOfMemoryReport& report) const = 0;

  // Fills in what this allocator knows of its range and its blocks, with the numbers of tags (Tag::id) where a
  // snapshot has indices. Without a range, blocks are in any order and have addresses instead of offsets. The
  // default adds nothing: then a snapshot has no more than stats().
  virtual void list_blocks(Snapshot& snapshot) const;

  // Adds what this allocator knows about a block whose free was refused: where it was allocated, and freed
  // first. The default adds nothing.
  virtual void explain_free(const Block& block, Misuse& misuse) const noexcept;

 protected:
  BlockSource() noexcept = default;
  BlockSource(const BlockSource&) = delete;
  BlockSource& operator=(const BlockSource&) = delete;
};

}  // namespace berth

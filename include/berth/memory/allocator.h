// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/export.h"
#include "berth/memory/block_source.h"
#include "berth/memory/pressure.h"
#include "berth/memory/stats.h"

// Allocators. A strategy (direct, arena, …) holds memory of one device; an adaptor (limit, track, trace, fail, check) wraps another
// allocator and changes one thing. They compose:
//
//     auto a = limit(track(direct("cpu")), 2_GiB);
//     Block b = a->allocate({.bytes = 1 << 20, .tag = "kv"});
//     a->deallocate(b);
//
// A block goes back to the allocator it came from, the outermost one; anything else is reported as misuse (record/misuse.h) and
// changes nothing. Allocators are handled by shared_ptr and kept alive by the buffers they feed. Any thread may call anything.
namespace berth {

class Allocator;
class Backend;  // device/backend.h

// While it lives, the allocator leaves its device in peace: it begins nothing that maps, frees or waits (calls that other threads are
// in the middle of may finish). Requests that cached memory can serve go on; others are refused with `busy`; frees are kept back until the last
// hold ends. Other allocators of the device are not affected. Movable, not copyable.
class [[nodiscard]] BERTH_EXPORT Hold {
 public:
  Hold(Hold&& other) noexcept;
  Hold& operator=(Hold&& other) noexcept;
  ~Hold();

 private:
  friend class Allocator;
  explicit Hold(std::shared_ptr<Allocator> allocator);
  void end() noexcept;

  std::shared_ptr<Allocator> allocator_;
};

class BERTH_EXPORT Allocator : public BlockSource, public std::enable_shared_from_this<Allocator> {
 public:
  ~Allocator() override;
  // Throws OutOfMemory with a full report; ArgumentError(invalid_alignment); AccessError(busy) while the device is held; DeviceError
  // when the device has failed. Zero bytes give a block with a null address.
  Block allocate(const Request& request) {
    // Part by part, in registers: a request that is written out in the call is never in memory, and costs next to nothing.
    return allocate_parts(request.bytes, request.alignment, request.stream, request.tag, request.site.line == 0 ? nullptr : &request.site);
  }

  // The same, but a lack of memory, and a hold, give nothing instead of an exception.
  std::optional<Block> try_allocate(Request&& request);
  std::optional<Block> try_allocate(const Request& request) { return try_allocate(Request(request)); }

  // An empty block is ignored. With `deallocate` the memory may stay cached; after `deallocate_now` its whole pages are back with the
  // device on return (or, while held, when the hold ends; or, inside a stream's host function, which must not wait for streams, with a
  // later trim). A small block shares its pages with others: they go back with the last. Where a device commits in pieces
  // (BackendProperties::piece_bytes), whole free pieces go back.
  void deallocate(const Block& block) noexcept;
  void deallocate_now(const Block& block) noexcept;

  // Makes a block longer where it is. True: it has that many bytes now, at the same address, the old ones as they were. False: nothing has
  // changed, because what follows is in use, a limit is in the way, or the strategy cannot (a pool can when what follows is free, or
  // the block's own slack suffices; `rounded` and `exact` within the bucket; an arena for its last block; `direct` never); allocate
  // another and copy. It never makes a block shorter, and does not try as hard as `allocate`: no cache is given up for it, no stream waited
  // for. A block that is not this allocator's, was freed, or was made by block_at is not grown.
  //
  // The block gets a new serial, and copies of the old one are stale: freeing one is a double free. To statistics, records and traces it
  // is a free and an allocation, at the same address.
  bool try_grow(Block& block, std::size_t bytes) noexcept;

  // A stream beside the one of the request uses the block. Once the block is freed, its memory is handed out again, or given back, only
  // when everything that this stream was given before the free is done as well. Say so before the free, once for each stream. A block
  // that was freed, or is not this allocator's, is reported as misuse, as its free would be. Without a heap to remember it this throws
  // bad_alloc: then wait for the stream before the free.
  void used_on(const Block& block, StreamRef stream);

  // The block at an address, for callers that keep bare pointers. It frees as well as the original, but without its serial a second
  // free after the address was handed out again cannot be told from a first.
  Block block_at(void* data, std::size_t bytes) const noexcept;

  // Gives cached memory back to the device: all of it, or all but `keep_bytes`. Harmless on an unused allocator.
  void release_cached() { trim(0); }
  virtual void trim(std::size_t keep_bytes) = 0;

  // Gives back what has not been needed for a while, by the strategy's own rule (PoolOptions::decay), and does so to the end, where
  // requests and frees do a little each. There is no thread in the background: a program that goes idle calls this from a timer of its
  // own, or release_cached() once. Strategies without such a rule do nothing.
  virtual void trim_idle() {}

  // Takes memory from the device ahead of need, so that requests up to that much do not. Throws OutOfMemory; does nothing where a
  // strategy keeps no cache.
  virtual void reserve(std::size_t bytes) = 0;

  Hold hold();

  // Sets what is called before memory is refused (memory/pressure.h), in place of what was set before; an empty one removes it. Any
  // thread, at any time. It belongs to this allocator: requests made of it call it, whichever allocator below refuses; requests made
  // of another, above or below, do not. reserve and try_grow do not call it.
  void on_pressure(PressureCallback callback);

  virtual Stats stats() const = 0;

  // Who holds how much, by tag, most first: every block that lives, also those without a tag. Together they are in_use_bytes and
  // live_blocks of stats() at that moment. As with stats(), an adaptor answers for the allocator below it, whoever uses that; `track`
  // answers for what came through itself. It looks at every block: for reports, not for loops.
  virtual std::vector<Holder> holders() const = 0;

  // Everything it holds, block by block, as plain data: memory/snapshot.h. Cheap enough for production: it stops nobody for longer than a lock
  // hop. An adaptor answers for the allocator below it.
  Snapshot snapshot() const;

  // The addresses that all its blocks come from, where a strategy has one range of them; else empty. There is not memory under all of it.
  // A pool has it from the first block on, and keeps it.
  virtual std::span<const std::byte> range() const noexcept { return {}; }

  Device device() const noexcept { return device_; }
  Backend& backend() const noexcept { return backend_; }
  virtual std::string name() const = 0;      // "limit(direct)"
  virtual std::string settings() const = 0;  // the options in effect, for people: "limit 2 GiB over direct"
  std::uint64_t id() const noexcept { return id_; }

  // Checks every invariant of the structure and of the allocators below; returns what is wrong, or an empty string. For tests: slow.
  virtual std::string audit() const = 0;

 protected:
  explicit Allocator(Backend& backend) noexcept;

  // Throws what a failed request means: OutOfMemory with a report, AccessError(busy), or the device's error.
  [[noreturn]] void throw_refused(const Request& request, const Failure& failure, unsigned pressure_calls = 0) const;

 private:
  Block allocate_parts(std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Site* site);
  Block allocate_slowly(std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Site* site);
  Block allocate_fully(std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Site* site);
  Status allocate_checked(Request& request, Block& block);
  Status allocate_under_pressure(Request& request, Block& block, unsigned& calls);
  bool call_for_memory(const Request& request, unsigned call) const;
  Status allocate_nothing(const Request& request, Block& block) noexcept;
  void record_refusal(const Request& request) const noexcept;
  void deallocate_slowly(const Block& block, When when) noexcept;
  void report_refused(const Block& block, BlockVerdict freed) const noexcept;

  Backend& backend_;  // backends are never destroyed
  const Device device_;
  const std::size_t usual_alignment_;
  const std::size_t max_alignment_;
  const std::uint64_t id_;
  std::shared_ptr<const PressureCallback> pressure_;  // under one lock for all allocators: it is rarely looked at
};

}  // namespace berth

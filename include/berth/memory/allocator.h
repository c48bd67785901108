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

// Allocators. A strategy (direct, arena, …) holds memory of one device; an adaptor (limit, track, trace, fail,
// check) wraps another allocator and changes one thing. They compose:
//
//     auto a = limit(track(direct("cpu")), 2_GiB);
//     Block b = a->allocate({.bytes = 1 << 20, .tag = "kv"});
//     a->deallocate(b);
//
// A block must be freed through the allocator that returned it, the outermost one; anything else is reported as
// misuse (record/misuse.h) and changes nothing. Allocators are held by shared_ptr and kept alive by the buffers
// that they feed. Every function is thread-safe.
namespace berth {

class Allocator;
class Backend;  // device/backend.h

// While a Hold lives, the allocator starts nothing on its device that maps, frees or waits (calls in progress
// on other threads may finish). Requests that cached memory can serve succeed; others are refused with `busy`;
// frees are deferred until the last hold ends. Other allocators of the device are not affected. Movable, not
// copyable.
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
  // Throws OutOfMemory with a full report; ArgumentError(invalid_alignment); AccessError(busy) while the device
  // is held; DeviceError when the device has failed, or cannot fill a block that is to be zeroed. A request of zero
  // bytes returns a block with a null address.
  // `here` is for requests without a site.
  Block allocate(const Request& request, const Site& here = Site::here()) {
    const Site& site = request.site.line == 0 ? here : request.site;
    if (request.zeroed) return allocate_zeroed(request, site);
    // The fields are passed one by one, in registers: of a request that is written out in the call, only the site ever
    // exists in memory.
    return allocate_parts(request.bytes, request.alignment, request.stream, request.tag, site);
  }

  // The same, but returns nullopt instead of throwing when memory is short or the device is held.
  std::optional<Block> try_allocate(Request&& request, const Site& here = Site::here());
  std::optional<Block> try_allocate(const Request& request, const Site& here = Site::here()) {
    return try_allocate(Request(request), here);
  }

  // An empty block is ignored. With `deallocate` the memory may stay cached; with `deallocate_now` its whole
  // pages are back with the device on return (or, while held, when the hold ends; or, inside a stream's host
  // function, which must not wait for streams, with a later trim). A small block has its pages in common with
  // other blocks: they are returned with the last one. Where a device commits in pieces
  // (BackendProperties::piece_bytes), whole free pieces are returned; an arena returns what is behind its last
  // live block.
  void deallocate(const Block& block) noexcept;
  void deallocate_now(const Block& block) noexcept;

  // Grows a block in place. True: the block has that many bytes, at the same address, and its old contents are
  // unchanged. False: nothing has changed, because the memory behind the block is in use, a limit refused, or
  // the strategy cannot grow (a pool can if the memory behind the block is free or the block's own slack
  // suffices; `rounded` and `exact` within the bucket; an arena for its last block; `direct` never); then
  // allocate another block and copy. It never shrinks a block, and does not try as hard as `allocate`: it drops
  // no cache and waits for no stream. A block that is not this allocator's, was freed, or was made by block_at
  // is not grown.
  //
  // The block gets a new serial, and copies of the old one are stale: freeing one is a double free. In
  // statistics, records and traces it appears as a free and an allocation at the same address.
  bool try_grow(Block& block, std::size_t bytes) noexcept;

  // Tells the allocator that another stream than that of the request uses the block. Once the block is freed,
  // its memory is reused or released only when all work that was given to this stream before the free is done
  // as well. Call it before the free, once for each stream. A block that was freed, or is not this allocator's,
  // is reported as misuse, as its free would be. Throws bad_alloc when there is no heap memory to remember it:
  // then wait for the stream before the free.
  void used_on(const Block& block, StreamRef stream);

  // The live block that begins at an address, for callers that keep bare pointers and no sizes: it can be freed, grown
  // and used like the original. Nothing for every other address: null, inside a block, freed, another allocator's. With
  // its alignment and stream where the strategy keeps them (0 where it does not: a pool). A search by address; all
  // strategies of berth can do it. Throws DeviceError(unsupported) where one cannot.
  std::optional<Block> block_at(const void* data);

  // The same without a search, for callers that know the size. It can be freed like the original, but
  // without its serial a double free is not detected once the address was handed out again.
  Block block_at(void* data, std::size_t bytes) const noexcept;

  // Returns cached memory to the device: all of it, or all but `keep_bytes`. Harmless on an unused allocator.
  void release_cached() { trim(0); }
  virtual void trim(std::size_t keep_bytes) = 0;

  // Returns memory that has been idle for a while to the device, by the strategy's own rule
  // (PoolOptions::decay). It finishes the work, where requests and frees each do a little. A
  // program that goes idle calls this from a timer of its own, has a thread do it (PoolOptions::background_trim), or
  // calls release_cached() once.
  // Strategies without such a rule do nothing.
  virtual void trim_idle() {}

  // Commits memory in advance, so that requests up to that many bytes do not go to the device. Throws
  // OutOfMemory; does nothing where a strategy keeps no cache.
  virtual void reserve(std::size_t bytes) = 0;

  Hold hold();

  // Sets the callback that runs before memory is refused (memory/pressure.h), and replaces the previous one; an
  // empty callback removes it. Any thread, at any time. It belongs to this allocator: requests made of this
  // allocator call it, whichever allocator below refuses; requests made of another, above or below, do not.
  // reserve and try_grow do not call it.
  void on_pressure(PressureCallback callback);

  virtual Stats stats() const = 0;

  // Who holds how much, by tag, largest first: every live block, also those without a tag. While no thread
  // allocates or frees, the sums equal in_use_bytes and live_blocks of stats(). As with stats(), an adaptor
  // answers for the allocator below it, all users of that included; `track` answers only for the blocks that it
  // passed through. It visits every block, a pool's in short steps, between which others are served: for
  // reports, not for loops.
  virtual std::vector<Holder> holders() const = 0;

  // Everything it holds, block by block, as plain data: memory/snapshot.h. Cheap enough for production: it
  // holds the lock for a few microseconds at a time. An adaptor answers for the allocator below it.
  Snapshot snapshot() const;

  // The address range that all its blocks come from, if the strategy has one; else empty. Not all of it is
  // committed. A pool reserves its range with the first block, and keeps it.
  virtual std::span<const std::byte> range() const noexcept { return {}; }

  Device device() const noexcept { return device_; }
  Backend& backend() const noexcept { return backend_; }
  virtual std::string name() const = 0;      // "limit(direct)"
  virtual std::string settings() const = 0;  // the options in effect, for people: "limit 2 GiB over direct"
  std::uint64_t id() const noexcept { return id_; }

  // Checks every invariant of its data structures and of the allocators below; returns what is wrong, or an
  // empty string. For tests: slow.
  virtual std::string audit() const = 0;

 protected:
  explicit Allocator(Backend& backend) noexcept;

  // Throws the exception for a failed request: OutOfMemory with a report, AccessError(busy), or the device's
  // error.
  [[noreturn]] void throw_refused(const Request& request, const Failure& failure, unsigned pressure_calls = 0) const;

 private:
  Block allocate_parts(std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Site& site);
  Block allocate_zeroed(const Request& request, const Site& site);
  void make_zero(const Block& block, StreamRef stream);
  Block allocate_slowly(std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Site& site);
  Block allocate_fully(std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Site& site);
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
  std::shared_ptr<const PressureCallback> pressure_;  // one lock guards that of all allocators: rarely read
};

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "berth/base/result.h"
#include "berth/device/backend.h"
#include "berth/export.h"
#include "berth/memory/block.h"
#include "berth/memory/out_of_memory.h"
#include "berth/memory/stats.h"

// Allocators. A strategy (direct, arena, …) holds memory of one device; an adaptor (limit, track, trace, fail) wraps another allocator
// and changes one thing. They compose:
//
//     auto a = limit(track(direct("cpu")), 2_GiB);
//     Block b = a->allocate({.bytes = 1 << 20, .tag = "kv"});
//     a->deallocate(b);
//
// A block goes back to the allocator it came from, the outermost one; anything else is reported as misuse (record/misuse.h) and
// changes nothing. Allocators are handled by shared_ptr and kept alive by the buffers they feed. Any thread may call anything.
namespace berth {

class Allocator;

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

class BERTH_EXPORT Allocator : public std::enable_shared_from_this<Allocator> {
 public:
  virtual ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Throws OutOfMemory with a full report; ArgumentError(invalid_alignment); AccessError(busy) while the device is held; DeviceError
  // when the device has failed. Zero bytes give a block with a null address.
  Block allocate(Request&& request);
  Block allocate(const Request& request) { return allocate(Request(request)); }

  // The same, but a lack of memory, and a hold, give nothing instead of an exception.
  std::optional<Block> try_allocate(Request&& request);
  std::optional<Block> try_allocate(const Request& request) { return try_allocate(Request(request)); }

  // An empty block is ignored. With `deallocate` the memory may stay cached; after `deallocate_now` its whole pages are back with the
  // device on return (or, while held, when the hold ends). A small block shares its pages with others: they go back with the last.
  void deallocate(const Block& block) noexcept;
  void deallocate_now(const Block& block) noexcept;

  // The block at an address, for callers that keep bare pointers. It frees as well as the original, but without its serial a second
  // free after the address was handed out again cannot be told from a first.
  Block block_at(void* data, std::size_t bytes) const noexcept;

  // Gives cached memory back to the device: all of it, or all but `keep_bytes`. Harmless on an unused allocator.
  void release_cached() { trim(0); }
  virtual void trim(std::size_t keep_bytes) = 0;

  // Takes memory from the device ahead of need, so that requests up to that much do not. Throws OutOfMemory; does nothing where a
  // strategy keeps no cache.
  virtual void reserve(std::size_t bytes) = 0;

  Hold hold();

  virtual Stats stats() const = 0;

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

  // ---- The inner interface: what strategies implement, and adaptors call on the allocator they wrap. It makes no records, reports no
  // ---- misuse and throws nothing.

  enum class Freed : unsigned char { yes, double_free, foreign, size_mismatch };
  enum class When : unsigned char { later, now };

  // Adds the address, the serial and the place to a block that describes the request otherwise; what it holds after a failure has no
  // meaning. REQUIRES: request.bytes > 0, its alignment is set and legal, its tag and allocator are final.
  virtual Status obtain(const Request& request, Block& block) noexcept = 0;

  // Anything but `yes` has changed nothing. On `yes`, and if `known` is not null, that receives the block as it was handed out: what
  // came in may have been made by block_at, and lack most of it.
  virtual Freed give_back(const Block& block, When when, Block* known) noexcept = 0;

  virtual void begin_hold() noexcept = 0;
  virtual void end_hold() noexcept = 0;

  // Adds what this allocator knows about a refused request. Each layer recognises its own refusal by the failure's text.
  virtual void explain(const Failure& failure, OutOfMemoryReport& report) const = 0;

 protected:
  explicit Allocator(Backend& backend) noexcept;

  // Throws what a failed request means: OutOfMemory with a report, AccessError(busy), or the device's error.
  [[noreturn]] void throw_refused(const Request& request, const Failure& failure) const;

 private:
  Block allocate_slowly(Request& request);
  Status allocate_checked(Request& request, Block& block);
  Status allocate_nothing(const Request& request, Block& block) noexcept;
  void record_allocation(const Request& request, const Block& block) const noexcept;
  void record_refusal(const Request& request) const noexcept;
  void deallocate_slowly(const Block& block, When when) noexcept;
  void report_refused_free(const Block& block, Freed freed) const noexcept;

  Backend& backend_;  // backends are never destroyed
  const Device device_;
  const std::size_t usual_alignment_;
  const std::size_t max_alignment_;
  const std::uint64_t id_;
};

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "berth/storage/buffer.h"
#include "berth/storage/storage.h"
#include "storage/watch.h"

// Access to the private parts of Buffer and Storage, for the files that make them. Thread rules are those of
// the handles, if not stated otherwise.
namespace berth::internal::storage {

// Scope guard for memory that is being adopted: calls the deleter unless a buffer has taken it, so that nothing
// leaks when adopting fails.
struct Adoption {
  void* data;
  Deleter deleter;

  Adoption(void* address, Deleter given) : data(address), deleter(std::move(given)) {}
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;
  ~Adoption() {
    if (deleter) deleter(data);
  }
};

// Replaces the owner of a buffer whose bytes others can reach: other processes, so that the block is freed only
// when they are done with it too, or writers of a mapped file.
class BufferGuard {
 public:
  virtual ~BufferGuard() = default;
  // Called once, when the last handle is gone, instead of freeing the block. The allocator is null for bytes of
  // another process and of a file.
  virtual void release_block(const Block& block, Allocator* allocator, std::shared_ptr<Allocator> kept_alive) noexcept = 0;
  // Called before the library itself reads or writes that range. Throws when touching it would raise a signal.
  virtual void before_touch(std::size_t /*offset*/, std::size_t /*bytes*/, bool /*write*/) const {}
  // Called before a storage over that part of the bytes is closed: makes its writes durable. Throws when that fails.
  virtual void before_close(std::size_t /*offset*/, std::size_t /*bytes*/) const {}
};

struct BufferMaker {
  struct Holding;
  class Watch;

  // `kept_alive` is the allocator, or empty for one that is never destroyed: its reference count is half the
  // cost of a small storage when many threads make them.
  static Buffer make(Request&& request, Allocator& allocator, std::shared_ptr<Allocator> kept_alive);
  static std::optional<Buffer> try_make(Request&& request, Allocator& allocator, std::shared_ptr<Allocator> kept_alive);
  static Buffer wrap(void* data, std::size_t bytes, Device device, Deleter& deleter, bool read_only, Owner owner,
                     const Site& site = {});  // moves from `deleter` only on success

  // For storage/watch.h. `noted` returns the same buffer, with a note of the storage that will hold it.
  static void enter(const Buffer& buffer, const Site& site) noexcept;
  static void forget(const void* state) noexcept;
  static std::vector<BufferNote> all_noted();
  static long count_handles(const Buffer& buffer) noexcept;  // REQUIRES: it has an entry
  static Buffer noted(Buffer buffer, DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset);

  // For share/ and file/. REQUIRES, for all but before_touch: the buffer has a state. The guard is set once,
  // under a lock of its setter.
  static bool is_pinned_down(const Buffer& buffer) noexcept;
  static std::unique_ptr<BufferGuard>& guard(const Buffer& buffer) noexcept;
  // Asks the guard of a mapped file about part of the bytes; does nothing for other buffers.
  static void before_touch(const Buffer& buffer, std::size_t offset, std::size_t bytes, bool write) {
    if (buffer.owner() == Owner::file) ask_guard(buffer, offset, bytes, write);
  }
  // Swaps the bytes of two buffers, with their owners, but not whether they may be written. REQUIRES: neither has a guard.
  static void exchange(const Buffer& a, const Buffer& b) noexcept;
  static bool is_borrowed(const Buffer& buffer) noexcept;  // external memory that is not adopted
  // Memory whose pages are locked for a device for as long as the reference lives, beside that of a pinned device.
  static void set_page_lock(const Buffer& buffer, std::shared_ptr<const void> lock) noexcept;
  static bool is_page_locked(const Buffer& buffer) noexcept;
  // For Storage::resize. REQUIRES: an allocator owns the bytes. `grow_in_place` returns false, with nothing changed, when
  // the allocator cannot.
  static std::size_t used_bytes(const Buffer& buffer) noexcept;  // without those that no view was made for
  static void set_used_bytes(const Buffer& buffer, std::size_t bytes) noexcept;
  static bool grow_in_place(const Buffer& buffer, std::size_t bytes) noexcept;

 private:
  static void ask_guard(const Buffer& buffer, std::size_t offset, std::size_t bytes, bool write);
};

struct StorageMaker {
  // REQUIRES: every element is inside the buffer.
  static Storage make(Buffer buffer, DType dtype, const Shape& shape, Strides strides, std::int64_t offset, std::size_t num_elements) {
    if (is_watching_storages()) [[unlikely]]
      buffer = BufferMaker::noted(std::move(buffer), dtype, shape, strides, offset);
    return Storage(std::move(buffer), dtype, Shape(shape), std::move(strides), offset, num_elements);
  }
};

Request request_of(std::size_t bytes, const AllocationOptions& options, const Allocator& allocator, const Site& site) noexcept;

}  // namespace berth::internal::storage

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "berth/storage/buffer.h"
#include "berth/storage/storage.h"
#include "storage/watch.h"

// The doors into Buffer and Storage for the files that make them.
namespace berth::internal::storage {

// Memory being adopted: until a buffer has taken the deleter, leaving the scope calls it, so that nothing leaks when adopting fails.
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

// Stands in for a buffer's owner when others know its bytes: other processes, so that a block goes back when they are done with it too, or
// whoever can write to the file they are of.
class BufferGuard {
 public:
  virtual ~BufferGuard() = default;
  // Called once, when the last handle is gone, instead of giving the block back. The allocator is null for bytes of another process and
  // of a file.
  virtual void let_go(const Block& block, Allocator* allocator, std::shared_ptr<Allocator> kept_alive) noexcept = 0;
  // Called before the library itself reads or writes that part of the bytes. Throws when touching them would end in a signal.
  virtual void before_touch(std::size_t /*offset*/, std::size_t /*bytes*/, bool /*write*/) const {}
};

struct BufferMaker {
  struct Holding;
  class Watch;

  // `kept_alive` is the allocator, or empty for one that is never destroyed: counting references to it is half the cost of a small
  // storage when many threads make them.
  static Buffer make(Request&& request, Allocator& allocator, std::shared_ptr<Allocator> kept_alive);
  static std::optional<Buffer> try_make(Request&& request, Allocator& allocator, std::shared_ptr<Allocator> kept_alive);
  static Buffer wrap(void* data, std::size_t bytes, Device device, Deleter& deleter, bool read_only, Owner owner,
                     const Site& site = {});  // takes the deleter on success

  // The same buffer, with a note of the storage that is to have it, where someone watches (storage/watch.h).
  static void enter(const Buffer& buffer, const Site& site) noexcept;
  static void forget(const void* state) noexcept;
  static std::vector<BufferNote> all_noted();
  static long count_handles(const Buffer& buffer) noexcept;  // REQUIRES: it is entered
  static Buffer noted(Buffer buffer, DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset);

  // For share/ and file/. REQUIRES, for all but before_touch: the buffer has a state. The guard is set once, under a lock of those who set it.
  static bool is_pinned_down(const Buffer& buffer) noexcept;
  static std::unique_ptr<BufferGuard>& guard(const Buffer& buffer) noexcept;
  // Asks the guard of a mapped file about part of the bytes; does nothing for other buffers.
  static void before_touch(const Buffer& buffer, std::size_t offset, std::size_t bytes, bool write) {
    if (buffer.owner() == Owner::file) ask_guard(buffer, offset, bytes, write);
  }
  // The bytes change places, with their owners. REQUIRES: both are an allocator's, and neither has a guard.
  static void exchange(const Buffer& a, const Buffer& b) noexcept;

 private:
  static void ask_guard(const Buffer& buffer, std::size_t offset, std::size_t bytes, bool write);
};

struct StorageMaker {
  // REQUIRES: every element lies inside the buffer.
  static Storage make(Buffer buffer, DType dtype, const Shape& shape, Strides strides, std::int64_t offset, std::size_t num_elements) {
    if (is_watching_storages()) [[unlikely]]
      buffer = BufferMaker::noted(std::move(buffer), dtype, shape, strides, offset);
    return Storage(std::move(buffer), dtype, Shape(shape), std::move(strides), offset, num_elements);
  }
};

Request request_of(std::size_t bytes, const AllocationOptions& options, const Site& site) noexcept;

}  // namespace berth::internal::storage

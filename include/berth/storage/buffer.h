// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "berth/copy/copy.h"
#include "berth/export.h"
#include "berth/memory/allocator.h"
#include "berth/memory/default_allocator.h"

// Bytes with one owner, counted by reference. A buffer comes from an allocator, to which it returns its block when the last handle is
// gone, or from outside, and then calls the deleter it was given.
//
//     Buffer raw = make_buffer(1 << 20, "cpu");
//     raw.copy_from(other);
//
// Handles are cheap to copy; copies name the same bytes. Counting is safe from any thread, the bytes are the user's to order. A buffer
// keeps its allocator alive. It may be destroyed at any time, after main and in a forked child included.
namespace berth {

namespace internal::storage {
struct BufferMaker;
}

// Who gives the bytes back.
enum class Owner : unsigned char { none, allocator, external, dlpack, shared, file };
BERTH_EXPORT std::string_view to_string(Owner owner) noexcept;

// Called once, when the last handle is gone, on whatever thread that is. It must not throw.
using Deleter = std::function<void(void* data)>;

// Where and how to allocate.
struct AllocationOptions {
  std::size_t alignment = 0;  // a power of two; 0: the device's default
  Tag tag = {};               // none: the thread's innermost TagScope
  StreamRef stream = {};      // the stream that will use the memory first
};

class BERTH_EXPORT Buffer {
 public:
  Buffer() noexcept = default;  // no bytes, on cpu

  explicit operator bool() const noexcept { return state_ != nullptr; }
  void* data() const noexcept;  // not checked: may be a device's address
  std::size_t size_bytes() const noexcept;
  Device device() const noexcept;
  Owner owner() const noexcept;
  bool is_external() const noexcept { return owner() == Owner::external || owner() == Owner::dlpack; }
  // Whether other processes can have the bytes mapped too (they lie on `shared`, or came from another process), and whether they are those
  // of a file (berth/file/map.h). Told from the owner and the device: of memory from outside (external, dlpack) berth knows neither, and
  // says no.
  bool is_shared() const noexcept;
  bool is_mapped() const noexcept;
  bool is_read_only() const noexcept;  // these bytes, or this handle
  Buffer read_only() const noexcept;   // a handle through which they cannot be changed
  long use_count() const noexcept;     // handles of this buffer, those inside storages included

  // The block it lives in, and the allocator that takes it back; empty and null for memory from outside.
  Block block() const noexcept;
  Allocator* allocator() const noexcept;

  // A stream beside the one it was allocated for uses the bytes: see Allocator::used_on. Copies and fills that berth puts into a stream
  // keep the buffer alive until they have run and need no word; work of your own does. Memory from outside is its owner's to keep.
  void used_on(StreamRef stream) const;

  // Sizes must be equal, else ArgumentError(size_mismatch). Throws AccessError(read_only) on a read-only target.
  Event copy_from(const Buffer& source, const CopyOptions& options = {}, Site site = Site::here()) const;
  Event fill(unsigned char value, const CopyOptions& options = {}, Site site = Site::here()) const;

  // Something that keeps the bytes alive, and where they are: while it lives, `share` answers `busy`. For whoever keeps an address.
  std::shared_ptr<const void> keep_alive() const;

  friend bool operator==(const Buffer& a, const Buffer& b) noexcept { return a.state_ == b.state_; }  // the same bytes, not equal ones

 private:
  struct State;
  friend struct internal::storage::BufferMaker;
  explicit Buffer(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  StridedSpan span() const;

  std::shared_ptr<State> state_;
  bool read_only_ = false;
};

// The allocator, or ArgumentError(invalid_argument) when it is null.
BERTH_EXPORT Allocator& require_allocator(Allocator* allocator);

// A buffer of its own from an allocator, or from the device's default one. Throws OutOfMemory. Zero bytes give a valid buffer whose
// address is null.
BERTH_EXPORT Buffer make_buffer(std::size_t bytes, const std::shared_ptr<Allocator>& allocator, const AllocationOptions& options = {},
                                Site site = Site::here());
BERTH_EXPORT Buffer make_buffer(std::size_t bytes, Device device, const AllocationOptions& options = {}, Site site = Site::here());

// Memory from outside. With a deleter it is adopted: the deleter is called when the last handle is gone (also when wrapping fails).
// Without one it is borrowed, and must outlive every handle.
BERTH_EXPORT Buffer wrap_buffer(void* data, std::size_t bytes, Device device, Deleter deleter = {}, bool read_only = false,
                                Site site = Site::here());

}  // namespace berth

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

// Reference-counted bytes with one owner. A buffer comes from an allocator, and frees its block there when the
// last handle is gone, or wraps external memory, and then calls the deleter it was given.
//
//     Buffer raw = make_buffer(1 << 20, "cpu");
//     raw.copy_from(other);
//
// Handles are cheap to copy; copies refer to the same bytes. The reference count is atomic; ordering accesses
// to the bytes is up to the user. A buffer keeps its allocator alive. It may be destroyed at any time,
// including after main and in a forked child.
namespace berth {

namespace internal::storage {
struct BufferMaker;
}

// Who frees the bytes.
enum class Owner : unsigned char { none, allocator, external, dlpack, shared, file };
BERTH_EXPORT std::string_view to_string(Owner owner) noexcept;

// Called once, when the last handle is gone, on the thread that dropped it. It must not throw.
using Deleter = std::function<void(void* data)>;

// How to allocate.
struct AllocationOptions {
  std::size_t alignment = 0;  // a power of two; 0: the device's default
  Tag tag = {};               // empty: the thread's innermost TagScope
  StreamRef stream = {};      // the stream that will use the memory first
  // All bytes are zero: at once, or with a stream when its earlier work has run. Host pages that the system has yet to
  // fill are left as they are, and take no memory before they are written; all others are written once.
  bool zeroed = false;
  // The buffer is as long as a multiple of its alignment, so that code may read and write whole vectors up to the end of
  // the last one. The storage's own size stays as it is.
  bool padded = false;
};

class BERTH_EXPORT Buffer {
 public:
  Buffer() noexcept = default;  // no bytes, on cpu

  explicit operator bool() const noexcept { return state_ != nullptr; }
  void* data() const noexcept;  // not checked: may be a device address
  std::size_t size_bytes() const noexcept;
  Device device() const noexcept;
  Owner owner() const noexcept;
  bool is_external() const noexcept { return owner() == Owner::external || owner() == Owner::dlpack; }
  // Whether other processes can have the bytes mapped too (they are on `shared`, or came from another process),
  // and whether they are a mapped file (berth/file/map.h). Derived from the owner and the device: for external
  // memory (external, dlpack) berth knows neither, and returns false.
  bool is_shared() const noexcept;
  bool is_mapped() const noexcept;
  bool is_read_only() const noexcept;  // these bytes, or this handle
  Buffer read_only() const noexcept;   // a handle that cannot write them
  long use_count() const noexcept;     // handles of this buffer, including those inside storages

  // The block it lives in, and the allocator that frees it; empty and null for external memory.
  Block block() const noexcept;
  Allocator* allocator() const noexcept;

  // Announces that a stream other than the one it was allocated for uses the bytes: see Allocator::used_on.
  // Copies and fills that berth enqueues keep the buffer alive until they have run and need no call; work of
  // your own does. External memory is its owner's responsibility.
  void used_on(StreamRef stream) const;

  // Sizes must be equal, else ArgumentError(size_mismatch). Throws AccessError(read_only) on a read-only
  // target.
  Event copy_from(const Buffer& source, const CopyOptions& options = {}, Site site = Site::here()) const;
  Event fill(unsigned char value, const CopyOptions& options = {}, Site site = Site::here()) const;

  // A reference that keeps the bytes alive and at their address: while it lives, `share` fails with `busy`. For
  // callers that keep an address.
  std::shared_ptr<const void> keep_alive() const;

  // Identity: the same bytes, not equal ones.
  friend bool operator==(const Buffer& a, const Buffer& b) noexcept { return a.state_ == b.state_; }

 private:
  struct State;
  friend struct internal::storage::BufferMaker;
  explicit Buffer(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  StridedSpan span() const;

  std::shared_ptr<State> state_;
  bool read_only_ = false;
};

// Returns the allocator. Throws ArgumentError(invalid_argument) when it is null.
BERTH_EXPORT Allocator& require_allocator(Allocator* allocator);

// A new buffer from an allocator, or from the device's default allocator. Throws OutOfMemory. Zero bytes give a
// valid buffer whose address is null.
BERTH_EXPORT Buffer make_buffer(std::size_t bytes, const std::shared_ptr<Allocator>& allocator, const AllocationOptions& options = {},
                                Site site = Site::here());
BERTH_EXPORT Buffer make_buffer(std::size_t bytes, Device device, const AllocationOptions& options = {}, Site site = Site::here());

struct WrapOptions {
  bool read_only = false;
};

// Wraps external memory. With a deleter the memory is adopted: the deleter is called when the last handle is
// gone (also when wrapping fails). Without one it is borrowed, and must outlive every handle.
BERTH_EXPORT Buffer wrap_buffer(void* data, std::size_t bytes, Device device, Deleter deleter = {}, const WrapOptions& options = {},
                                Site site = Site::here());

}  // namespace berth

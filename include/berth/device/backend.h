// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/device/device.h"
#include "berth/device/stream.h"
#include "berth/export.h"

// The interface to one device. A backend reserves address ranges and commits memory in them, copies and fills
// bytes, makes streams, and describes as data what it can and cannot do. Everything above (pools, limits,
// storages, copies) is written once against this interface.
//
// To add a kind of device, derive from `Backend` and `BackendFactory` and register the factory
// (device/registry.h); examples/ledger_backend.h does so in one file, outside the library.
//
// Thread rule: every function may be called from any thread at any time. Expected failures are results, not
// exceptions.
namespace berth {

struct ElementCopy;  // device/element_copy.h

struct Abilities {
  bool host_access = false;   // the host may read and write its addresses
  bool move = false;          // `move` works: pages are remapped to another address without a copy
  bool streams = false;       // make_stream works
  bool pinned = false;        // its memory is page-locked for fast transfers
  bool fork_safe = false;     // a forked child may use and free what it inherited
  bool fork_fresh = false;    // if not: it may allocate memory of its own, with allocators that it makes
  bool kernels = false;       // `copy_elements` works
  bool wants_pinned = false;  // copies are much faster with page-locked memory, so others are staged in it
  bool shared = false;        // its memory can be shared with other processes: see share/share.h
  bool move_in_use = false;   // `begin_move` works: pages move while pending work still uses them

  friend bool operator==(const Abilities&, const Abilities&) = default;
};

struct BackendProperties {
  std::string description;        // for people: "NVIDIA H200"
  std::size_t unit_bytes = 0;     // granularity of reserve, commit, decommit and move; a power of two
  std::size_t alignment = 64;     // the default alignment of blocks
  std::size_t max_alignment = 0;  // the largest a request may ask for; a power of two
  Abilities abilities;
  // 0: memory is committed, moved and decommitted unit by unit. Else each commit is backed by pieces of this
  // many bytes, from its first address on, the last one possibly shorter; only whole pieces can be moved, and a
  // piece returns to the device when all of it is decommitted.
  std::size_t piece_bytes = 0;
  // Approximate cost of committing memory, including the page faults of the first touch. It determines how
  // eagerly unused memory is decommitted.
  std::size_t commit_us_per_mib = 100;
};

struct MemoryInfo {
  std::size_t total_bytes = 0;  // of the device; on a host at most the cgroup's limit
  std::size_t free_bytes = 0;   // can be committed now
  bool limited = false;         // total_bytes is a cgroup's limit and not the machine's memory
};

// One contiguous transfer. At least one end is on the backend's own device; the other is there too, or is
// host-accessible, or is on a device that this one `reaches`.
struct Transfer {
  void* target = nullptr;
  Device target_device;
  const void* source = nullptr;
  Device source_device;
  std::size_t bytes = 0;
};

class BERTH_EXPORT Backend {
 public:
  explicit Backend(Device device) noexcept : device_(device) {}
  virtual ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  Device device() const noexcept { return device_; }
  virtual const BackendProperties& properties() const noexcept = 0;
  virtual MemoryInfo memory_info() const = 0;

  // Address ranges. Every address and size is a multiple of unit_bytes (reserve rounds its size up). A reserved
  // range has addresses and no memory; committed parts hold bytes, initially indeterminate. `release` also
  // decommits what is still committed.
  // REQUIRES: alignment is a power of two, at most max_alignment.
  virtual Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept = 0;
  virtual Status commit(void* address, std::size_t bytes) noexcept = 0;
  virtual Status decommit(void* address, std::size_t bytes) noexcept = 0;
  // Remaps the pages of `from` (committed) to `to` (reserved, not committed); `from` is then no longer
  // committed. All or nothing.
  virtual Status move(void* from, void* to, std::size_t bytes) noexcept;
  // The same in two calls, for pages that pending work still reads and writes: after begin_move they are mapped
  // at both addresses. They are committed at `to`; at `from` they serve that work alone, and nothing else can
  // be committed there, until end_move is called for the same range. What is decommitted at `to` in between
  // returns to the device only after end_move. Only with the ability `move_in_use`.
  virtual Status begin_move(void* from, void* to, std::size_t bytes) noexcept;
  virtual Status end_move(void* from, std::size_t bytes) noexcept;
  virtual Status release(void* address, std::size_t bytes) noexcept = 0;

  // One block directly from the device, for the `direct` strategy. The default reserves and commits a separate
  // range for each.
  virtual Result<void*> allocate(std::size_t bytes, std::size_t alignment) noexcept;
  virtual void free(void* address, std::size_t bytes, std::size_t alignment) noexcept;

  // Copies bytes, or repeats a pattern of 1, 2, 4, 8 or 16 bytes (`bytes` is a multiple of its size). Without a
  // stream the call is synchronous; with one, of its own or another device, the work runs in stream order, and
  // the memory must stay allocated until then. A backend without streams may reject a stream. A range that is
  // not committed is rejected where the backend can tell. (Between two host-accessible addresses berth copies
  // by itself, without a backend.)
  virtual Status copy(const Transfer& transfer, StreamRef stream) noexcept = 0;
  virtual Status fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept = 0;

  // Makes committed bytes zero; a stream is as for `fill`, with which the default does it. A device that knows that
  // pages were never written since the system gave them leaves those as they are, and untouched; with a stream it
  // fills, because earlier work there may still write them.
  virtual Status zero(void* target, std::size_t bytes, StreamRef stream) noexcept;

  // Many copies at once, in no order; each is as for `copy`, and none touches what another writes. The list
  // itself need not outlive the call. A backend whose submission overhead exceeds the cost of a small copy
  // takes thousands in one submission; the default submits one after another, up to the first that fails.
  virtual Status copy_batch(std::span<const Transfer> transfers, StreamRef stream) noexcept;

  // Converts bit for bit as copy/convert.h does; the stream is as above. Source and target do not overlap. Only
  // with the ability `kernels`.
  virtual Status copy_elements(const ElementCopy& copy, StreamRef stream) noexcept;
  // Whether the other end of a `copy` may be on that device, whose memory the host cannot access.
  virtual bool reaches(Device other) const noexcept;

  // A stream is a handle that keeps what it needs alive.
  virtual Result<Stream> make_stream() noexcept;

  // False once the device has failed or was reset: its memory is lost, and destructors do not touch it.
  virtual bool is_alive() const noexcept { return true; }

 private:
  Device device_;
};

// Makes the backends of one kind.
class BERTH_EXPORT BackendFactory {
 public:
  virtual ~BackendFactory();

  // The number of devices of the kind on this machine now.
  virtual int count() = 0;

  // Why there are none, and what would help; called only when count() is 0.
  virtual std::string unavailable_reason() = 0;

  // The backend of one device; called once per index, and kept until the process ends. REQUIRES: 0 <= index <
  // count().
  virtual std::unique_ptr<Backend> make(Device device) = 0;
};

// Throws the exception that corresponds to a failure. `asked` says what was being done.
[[noreturn]] BERTH_EXPORT void throw_failure(const Failure& failure, Device device, std::string_view asked);

}  // namespace berth

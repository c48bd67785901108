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

// The code behind one device. A backend gives berth memory in address ranges, moves and fills bytes, makes streams, and says as data
// what it can and cannot do. Everything above (pools, limits, storages, copies) is written once against this interface.
//
// To add a kind of device, derive from `Backend` and `BackendFactory` and register the factory (device/registry.h);
// examples/ledger_backend.h does it in one file, outside the library.
//
// Thread rule: every function may be called from any thread at any time. Expected failures are results, not exceptions.
namespace berth {

struct ElementCopy;  // device/element_copy.h

struct Abilities {
  bool host_access = false;   // the host may read and write its addresses
  bool move = false;          // `move` works: pages change address without their bytes being copied
  bool streams = false;       // make_stream works
  bool pinned = false;        // its memory is page-locked for fast transfers
  bool fork_safe = false;     // a forked child may go on using and freeing what it inherited
  bool kernels = false;       // `copy_elements` works
  bool wants_pinned = false;  // its copies are much faster from and to page-locked memory, so that others are staged there
  bool shared = false;        // its memory can be shared with other processes: see share/share.h
  bool move_in_use = false;   // `begin_move` works: pages change address while work under way still uses the old one

  friend bool operator==(const Abilities&, const Abilities&) = default;
};

struct BackendProperties {
  std::string description;        // for people: "NVIDIA H200"
  std::size_t unit_bytes = 0;     // what reserve, commit, decommit and move work in; a power of two
  std::size_t alignment = 64;     // of blocks that do not ask for another
  std::size_t max_alignment = 0;  // the largest a request may ask for; a power of two
  Abilities abilities;
  // 0: memory is committed, moved and given back unit by unit. Else what one commit takes is in pieces of so many bytes, from its first
  // address on, the last one shorter; only whole pieces move, and a piece is back with the device when all of it is decommitted.
  std::size_t piece_bytes = 0;
  // About what it costs to take memory anew, the first touch included. How readily unused memory is given back follows from it.
  std::size_t commit_us_per_mib = 100;
};

struct MemoryInfo {
  std::size_t total_bytes = 0;  // what the device has; on a host not more than the control group allows
  std::size_t free_bytes = 0;   // what could be committed now
  bool limited = false;         // total_bytes is a control group's limit and not the machine's memory
};

// One contiguous transfer. At least one end is on the backend's own device; the other is there too, or is memory the host may touch, or is
// on a device that this one `reaches`.
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

  // Address ranges. Every address and size is a multiple of unit_bytes (for reserve, a size is rounded up). A reserved range has
  // addresses and no memory; committed parts hold bytes, of any value at first. Releasing gives back the rest as well.
  // REQUIRES: alignment is a power of two, at most max_alignment.
  virtual Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept = 0;
  virtual Status commit(void* address, std::size_t bytes) noexcept = 0;
  virtual Status decommit(void* address, std::size_t bytes) noexcept = 0;
  // The bytes of `from` (committed) are found at `to` (reserved, not committed), and `from` is no longer committed. All or nothing.
  virtual Status move(void* from, void* to, std::size_t bytes) noexcept;
  // The same in two calls, for bytes that work under way still reads and writes: after the first they are found at both addresses. They are
  // committed at `to`; at `from` they are there for that work alone, and nothing else can be put there, until the second call, for the same
  // range. What is decommitted at `to` meanwhile is back with the device after that call, too. Where `move_in_use` says so.
  virtual Status begin_move(void* from, void* to, std::size_t bytes) noexcept;
  virtual Status end_move(void* from, std::size_t bytes) noexcept;
  virtual Status release(void* address, std::size_t bytes) noexcept = 0;

  // One block straight from the device, for the `direct` strategy. The default reserves and commits a range of its own for each.
  virtual Result<void*> allocate(std::size_t bytes, std::size_t alignment) noexcept;
  virtual void free(void* address, std::size_t bytes, std::size_t alignment) noexcept;

  // Copies bytes, or repeats a pattern of 1, 2, 4, 8 or 16 bytes (bytes is a multiple of it). Without a stream it is done on return;
  // with one, its own or another device's, it happens in the stream's order, and the memory must stay until then. A backend without
  // streams may refuse a stream. A range that is not committed is refused where the backend can tell. (Between two addresses that
  // the host may touch berth copies by itself, and asks nobody.)
  virtual Status copy(const Transfer& transfer, StreamRef stream) noexcept = 0;
  virtual Status fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept = 0;

  // Many copies at once, in no order; each is as for `copy`, and none touches what another writes. The list itself may go when the call
  // returns. A backend for which a copy costs more to ask for than to do takes thousands of small ones in one submission; the default
  // asks for one after another, up to the first that is refused.
  virtual Status copy_batch(std::span<const Transfer> transfers, StreamRef stream) noexcept;

  // By the rules of copy/convert.h, to the bit; stream as above. The sides do not overlap. Only where `kernels` says so.
  virtual Status copy_elements(const ElementCopy& copy, StreamRef stream) noexcept;
  // Whether `copy` may have its other end on that device, which the host may not touch.
  virtual bool reaches(Device other) const noexcept;

  // Streams are handles that keep what they need alive.
  virtual Result<Stream> make_stream() noexcept;

  // False once the device has failed or was reset: everything on it is gone, and destructors leave it alone.
  virtual bool is_alive() const noexcept { return true; }

 private:
  Device device_;
};

// Makes the backends of one kind.
class BERTH_EXPORT BackendFactory {
 public:
  virtual ~BackendFactory();

  // How many devices of the kind this machine has now.
  virtual int count() = 0;

  // Why there are none, and what would help; only asked when count() is 0.
  virtual std::string unavailable_reason() = 0;

  // The backend of one device; called once per index, and kept until the process ends. REQUIRES: 0 <= index < count().
  virtual std::unique_ptr<Backend> make(Device device) = 0;
};

// Throws a failure as the exception it stands for. `asked` says what was being done.
[[noreturn]] BERTH_EXPORT void throw_failure(const Failure& failure, Device device, std::string_view asked);

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/export.h"
#include "berth/storage/create.h"
#include "berth/storage/storage.h"

// Storages that other processes can map. Their bytes are on the device `shared`: host memory in unnamed files
// (segments), many storages per file and file descriptor. They are created like any other storage, and `share`
// moves an existing storage there:
//
//     Storage x = zeros({1024}, DType::f32, "shared");
//     share(y);                                    // y, and every view of it, are in shared memory now
//     channel.send(x);                             // share/channel.h: another process has it too
//
// Nothing leaks, however a process ends: the kernel owns the memory, and every claim on it belongs to a process
// whose lifetime the kernel tracks. There is no daemon, no file, and no reference count that could be wrong.
// docs/sharing.md explains the protocol, and what is guaranteed when each party dies. Named storages are in
// share/named.h.
//
// A process that has one storage of a segment can read and write the whole segment: processes that share trust
// each other as much as threads do. Berth validates all metadata that it reads there, but the bytes of storages
// are whatever other processes wrote.
//
// Storages on CUDA need no `share`: a channel sends them as they are.
//
// After fork, the child may use what it inherited while its parent lives; the claims belong to the parent
// alone, and copying or dropping handles in the child does not change them. What the child shares itself is its
// own. Any thread.
namespace berth {

// The file and offset of a storage's bytes, for callers that map them themselves. Berth owns the descriptor,
// which is valid while the storage lives; `dup` it to keep it. It is close-on-exec.
struct SharedLocation {
  int descriptor = -1;  // -1: there are no bytes
  std::uint64_t offset = 0;
  std::size_t size_bytes = 0;
};

struct NewShared {
  Storage storage;  // of u8
  SharedLocation location;
};

// Unnamed, uninitialized shared memory. Its pages are committed here, not at the first touch. Throws
// OutOfMemory.
BERTH_EXPORT NewShared new_shared(std::size_t bytes, const AllocationOptions& options = {}, Site site = Site::here());

// The location of a storage that this process allocated on `shared`. Throws AccessError(wrong_device) for any
// other.
BERTH_EXPORT SharedLocation shared_location(const Storage& storage);

struct ShareOptions {
  // Moves borrowed memory as well. Its lender keeps the bytes that it has, and sees nothing of what is written later.
  bool borrowed = false;
};

// Moves a storage in host memory, with its buffer and so with all its views, into shared memory. Handles stay valid
// and are on `shared` afterwards; addresses taken from them before (`data_ptr`, `data<T>()`, spans) are
// invalidated. The bytes are copied once. REQUIRES: no other thread touches them during the call.
//
// It may be on `cpu` or `pinned`, or adopted (from_blob or wrap_buffer with a deleter, which is called here). What
// was page-locked for a device is page-locked afterwards, and `is_pinned()`, in the process that shares it.
//
// No-op for storages on `shared` and on CUDA, those that map a file, and those without bytes. Throws
// AccessError(busy), with nothing changed, when someone else holds the address: memory that is borrowed, or was
// imported by DLPack, a DLPack export, a copy that a stream has not finished, `Buffer::keep_alive`. Throws
// OutOfMemory, and DeviceError: unsupported for memory of other devices, out_of_memory when it cannot be page-locked.
BERTH_EXPORT void share(const Storage& storage, Site site = Site::here());
BERTH_EXPORT void share(const Storage& storage, const ShareOptions& options, Site site = Site::here());

// Drops the claims of dead processes in all segments that this process knows, and frees memory that only they
// still held. That happens automatically whenever a segment is used; this is for an idle process.
BERTH_EXPORT void reap_shared() noexcept;

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/export.h"
#include "berth/storage/create.h"
#include "berth/storage/storage.h"

// Storages that other processes can have too. Their bytes lie on the device `shared`: host memory in files without a name, many storages in
// one file and behind one descriptor. Making one is like making any other, and `share` turns one that is there already into one:
//
//     Storage x = zeros({1024}, DType::f32, "shared");
//     share(y);                                    // y, and every view of it, lie in shared memory now
//     channel.send(x);                             // share/channel.h: another process has it too
//
// Nothing is left behind, however a process ends: the memory belongs to the kernel, and every claim on it to a process whose life the
// kernel knows. There is no daemon, no file, and no count that could be wrong. docs/sharing.md tells how, and what is promised when each
// party dies. Storages with a name are in share/named.h.
//
// Whoever has one storage of a segment can read and write all of the segment: processes that share trust each other as much as threads do.
// Berth believes nothing that it reads there, but the bytes of storages are what others made them.
//
// Storages on CUDA need no `share`: a channel takes them as they are.
//
// After fork, the child may use what it inherited while its parent lives; it belongs to the parent alone, and nothing that the child does
// with its handles has an effect. What the child shares itself is its own. Any thread.
namespace berth {

// Where bytes lie, for those who map them themselves. The descriptor stays berth's, and good while the storage lives; `dup` it to keep it.
// It is not inherited by programs that are started.
struct SharedLocation {
  int descriptor = -1;  // -1: there are no bytes
  std::uint64_t offset = 0;
  std::size_t size_bytes = 0;
};

struct NewShared {
  Storage storage;  // of u8
  SharedLocation location;
};

// Shared memory without a name, of any value. Throws OutOfMemory: pages are taken here, and not when they are touched.
BERTH_EXPORT NewShared new_shared(std::size_t bytes, const AllocationOptions& options = {}, Site site = Site::here());

// Of a storage that was made here on `shared`. Throws AccessError(wrong_device) for any other.
BERTH_EXPORT SharedLocation shared_location(const Storage& storage);

// Moves a storage on `cpu`, with its buffer and so with all its views, into shared memory. Handles stay good; addresses that were taken from
// them (`data_ptr`, `data<T>()`, spans) are dead afterwards, as is the old device: it is on `shared` now. The bytes are copied once. No
// other thread may touch them meanwhile.
//
// Left as they are: storages on `shared` and on CUDA, those that map a file, and those without bytes. Throws AccessError(busy), with nothing changed,
// when someone else has the address: memory from outside, a DLPack export, a copy that a stream has not finished, `Buffer::keep_alive`.
// Throws OutOfMemory, and DeviceError(unsupported) for memory of other devices.
BERTH_EXPORT void share(const Storage& storage, Site site = Site::here());

// Drops what dead processes have left in all segments that this process knows, and gives back memory that only they still held. That happens
// by itself whenever a segment is used; this is for a process that waits.
BERTH_EXPORT void reap_shared() noexcept;

}  // namespace berth

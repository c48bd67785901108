// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"
#include "berth/share/ticket.h"
#include "berth/storage/storage.h"

// Shared storages with a name, for processes that have no channel to each other:
//
//     Storage w = create_shared("weights", {1024}, DType::f32);          // in one process
//     Storage v = open_shared("weights");                                // in another
//
// A name appears when the storage is whole, never before. It goes when its creator lets go of the storage, or with unlink_shared; those who
// have it open keep the bytes. A creator that was killed cannot let go: then the name goes with the last who has it open, or, when nobody
// has, with whoever next creates or opens that name, or calls collect_shared. Bytes are never cut under a reader.
//
// Names are a user's own: files of mode 0600 in a folder of mode 0700, /dev/shm/berth-<user id> (or BERTH_SHM_DIR). What is found there
// and is not plainly this user's and berth's is refused, and never removed. Names are 1 to 200 bytes of UTF-8 without '/' and control
// characters, and do not begin with a dot. Any thread.
namespace berth {

// Bytes of value zero. Without a name, a fresh one is made: shared_name tells it. Throws AccessError: already_exists while someone has a storage of that
// name, untrusted when the folder is not this user's; DeviceError: device_unavailable where there is no folder for it, out_of_memory{need}
// when it is full; ArgumentError(invalid_name). Then nothing is left.
BERTH_EXPORT Storage create_shared(std::string_view name, const Shape& shape, DType dtype, Site site = Site::here());

// Throws AccessError: not_found, also for what a dead creator has left and nobody has open; permission_denied, untrusted for what is not
// this user's or not a storage; DeviceError(timeout) when a process that opens or closes it was stopped in the middle; ArgumentError
// (limit_exceeded) when 255 processes have it open.
BERTH_EXPORT Storage open_shared(std::string_view name, const ImportOptions& options = {}, Site site = Site::here());

// Lets go now, and not when the handle would: the storage has no elements afterwards. Throws AccessError(busy) while other handles or views
// of it are there.
BERTH_EXPORT void close_shared(Storage& storage);

// Removes the name; those who have it open keep the bytes. False when there is none.
BERTH_EXPORT bool unlink_shared(std::string_view name);

// The name under which it was created or opened; empty for other storages.
BERTH_EXPORT std::string shared_name(const Storage& storage);

struct SharedHolder {
  int process = 0;  // a label: it may be of another name space
  bool is_alive = false;
};

struct NamedShared {
  std::string name = {};
  bool is_ours = true;           // false: not a storage of this version of berth, or not this user's; the rest is unknown
  std::string problem = {};      // why
  std::uint64_t size_bytes = 0;  // of the elements
  DType dtype = DType::u8;
  Shape shape = {};
  std::uint64_t memory_bytes = 0;  // that the kernel has given it
  std::uint64_t age_ns = 0;        // by the clock on the wall
  std::vector<SharedHolder> holders = {};

  bool is_dead() const noexcept;  // nobody has it open
};
BERTH_EXPORT std::vector<NamedShared> list_shared();

// Removes the names that are dead, and what dead processes hold of the others. Returns what was removed.
BERTH_EXPORT std::vector<NamedShared> collect_shared();

}  // namespace berth

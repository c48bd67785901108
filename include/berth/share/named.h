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

// Named shared storages, for processes that have no channel to each other:
//
//     Storage w = create_shared("weights", {1024}, DType::f32);          // in one process
//     Storage v = open_shared("weights");                                // in another
//
// A name becomes visible once the storage is complete. It is removed when its creator releases the storage, or
// by unlink_shared; processes that have it open keep the bytes. If the creator was killed, the name is removed
// by the last process that has it open, or, if there is none, by the next process that creates or opens that
// name, or calls reap_named. The file is never truncated under a reader.
//
// Names are per user: files of mode 0600 in a directory of mode 0700, /dev/shm/berth-<user id> (or
// BERTH_SHM_DIR). A file there that is not clearly this user's and berth's is rejected, and never removed.
// Names are 1 to 200 bytes of UTF-8 without '/' and control characters, and do not begin with a dot. Any
// thread.
namespace berth {

// Creates a zeroed storage. An empty name generates a unique one: see shared_name. Throws AccessError:
// already_exists while a storage of that name is open, untrusted when the directory is not this user's;
// DeviceError: device_unavailable where the directory cannot be made, out_of_memory{need} when its file system
// is full; ArgumentError(invalid_name). On failure nothing is left behind.
BERTH_EXPORT Storage create_shared(std::string_view name, const Shape& shape, DType dtype, Site site = Site::here());

// Throws AccessError: not_found, also when the creator is dead and nobody has it open; permission_denied or
// untrusted for a file that is not this user's or not a storage; DeviceError(timeout) when a process was
// stopped while it opens or closes the same name; ArgumentError(limit_exceeded) when 255 processes have it
// open.
BERTH_EXPORT Storage open_shared(std::string_view name, const ImportOptions& options = {}, Site site = Site::here());

// Removes the name; processes that have it open keep the bytes. Returns false when there is none.
BERTH_EXPORT bool unlink_shared(std::string_view name);

// The name that the storage was created or opened with; empty for unnamed storages.
BERTH_EXPORT std::string shared_name(const Storage& storage);

struct SharedHolder {
  int process = 0;  // informational: it may be an id of another PID namespace
  bool is_alive = false;
};

struct NamedShared {
  std::string name = {};
  bool is_ours = true;           // false: of another version or user, or no storage; the rest is unknown
  std::string problem = {};      // why
  std::uint64_t size_bytes = 0;  // of the elements
  DType dtype = DType::u8;
  Shape shape = {};
  std::uint64_t memory_bytes = 0;  // resident, by the kernel's count
  std::uint64_t age_ns = 0;        // by the system clock
  std::vector<SharedHolder> holders = {};

  bool is_dead() const noexcept;  // nobody has it open
};
BERTH_EXPORT std::vector<NamedShared> list_shared();

// Removes the names that nobody has open, and drops the claims of dead processes on the others. Returns the
// names that were removed.
BERTH_EXPORT std::vector<NamedShared> reap_named();

}  // namespace berth

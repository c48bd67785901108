// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// Files that several processes map: the basis of shared memory. Offsets and sizes of ranges are multiples of
// the page size. Any thread.
//
// Locks are advisory locks on single bytes of a file, possibly past its end, and belong to an open file
// description: to one `open`, and to every descriptor that fork, dup or a message derived from it. The kernel
// releases a description's locks when its last reference goes away, however the process died. That is how berth
// knows which processes are alive. A mapping holds a reference to the description it was made through, and a
// forked child inherits it: so a description that holds locks is never mapped; map_file_range opens a new
// description for each mapping.
namespace berth::internal::os {

// Creates an unnamed sparse file of that size in memory (memfd), sealed against resizing. Fails when the size
// exceeds RLIMIT_FSIZE, for which the kernel would raise a signal.
Result<Descriptor> make_memory_file(const char* label, std::uint64_t bytes) noexcept;

// A new open file description for an open file. Needs /proc.
Result<Descriptor> open_again(int descriptor) noexcept;
// A new descriptor for the same description, of any kind of file.
Result<Descriptor> duplicate(int descriptor) noexcept;
void keep_from_programs(int descriptor) noexcept;  // sets close-on-exec, for descriptors that others made

struct FileFacts {
  std::uint64_t bytes = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t used_bytes = 0;  // backed by memory
  std::uint32_t user = 0;
  std::uint32_t mode = 0;  // permissions
  std::uint32_t links = 0;
  bool is_regular = false;
  bool is_socket = false;
  bool never_shrinks = false;     // sealed against truncation
  bool is_never_written = false;  // sealed against new mappings that write

  bool same_file(const FileFacts& other) const noexcept { return device == other.device && inode == other.inode; }
};
Result<FileFacts> facts_of(int descriptor) noexcept;

// Allocates memory for the range, or fails when there is none; contents are kept. After a failure parts of it
// may be allocated.
Status allocate_range(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;
// Frees the memory of the range (punches a hole). The bytes read as zero from then on.
Status punch_hole(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

enum class Access : unsigned char { read, write };
Result<void*> map_file_range(int descriptor, std::uint64_t offset, std::size_t bytes, Access access) noexcept;
// Replaces the mapping at the address; maps through this very description.
Status map_file_range_at(void* address, int descriptor, std::uint64_t offset, std::size_t bytes) noexcept;
void unmap(void* address, std::size_t bytes) noexcept;

// True: this description now holds the lock. False: another does.
Result<bool> try_lock_byte(int descriptor, std::uint64_t byte) noexcept;
void unlock_byte(int descriptor, std::uint64_t byte) noexcept;
// Whether another description holds the lock.
Result<bool> is_byte_locked(int descriptor, std::uint64_t byte) noexcept;

std::uint32_t user_id() noexcept;  // effective
// From getrandom, or from /dev/urandom where a sandbox refuses that; fails where it refuses both.
Status random_bytes(void* target, std::size_t bytes) noexcept;
std::uint64_t wall_time_ns() noexcept;  // since 1970; for display only
void sleep_us(unsigned microseconds) noexcept;

}  // namespace berth::internal::os

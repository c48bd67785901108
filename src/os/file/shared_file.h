// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// Files whose pages several processes map: what shared memory is made of. Offsets and sizes of ranges are multiples of the page size.
//
// Locks are on single bytes of a file, which need not be there, and belong to an open description: to one `open`, and whoever got its
// descriptor by fork, dup or a message. The kernel lets go of a description's locks when nothing refers to it any more, by whatever death.
// That is how berth knows who lives. A mapping refers to the description it was made through, and a forked child has it too: so what has
// locks is never mapped, but a description of its own, which map_file_range opens for each mapping.
namespace berth::internal::os {

// A file without a name, of that many bytes, none of which has memory. It can never change in size. Fails where the process may not
// make files that long (RLIMIT_FSIZE), which the kernel would answer with a signal.
Result<Descriptor> make_memory_file(const char* label, std::uint64_t bytes) noexcept;

// A description of its own for a file that is open. Needs /proc.
Result<Descriptor> open_again(int descriptor) noexcept;
// The same description under one more number: any kind of file.
Result<Descriptor> duplicate(int descriptor) noexcept;
void keep_from_programs(int descriptor) noexcept;  // that are started: for descriptors that others made

struct FileFacts {
  std::uint64_t bytes = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t used_bytes = 0;  // that there is memory for
  std::uint32_t user = 0;
  std::uint32_t mode = 0;  // the permissions
  std::uint32_t links = 0;
  bool is_regular = false;
  bool never_shrinks = false;  // nobody can cut it

  bool same_file(const FileFacts& other) const noexcept { return device == other.device && inode == other.inode; }
};
Result<FileFacts> facts_of(int descriptor) noexcept;

// Gives the range memory, or says that there is none; contents stay. After a failure parts of it may have some.
Status give_memory(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;
// Takes it away. The bytes read as zero from then on.
Status take_memory(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

enum class Access : unsigned char { read, write };
Result<void*> map_file_range(int descriptor, std::uint64_t offset, std::size_t bytes, Access access) noexcept;
// In place of what is at the address, and through this very description.
Status map_file_range_at(void* address, int descriptor, std::uint64_t offset, std::size_t bytes) noexcept;
void unmap(void* address, std::size_t bytes) noexcept;

// True: the byte is locked by this description. False: by another.
Result<bool> try_lock_byte(int descriptor, std::uint64_t byte) noexcept;
void unlock_byte(int descriptor, std::uint64_t byte) noexcept;
// Whether another description has it.
Result<bool> is_byte_locked(int descriptor, std::uint64_t byte) noexcept;

std::uint32_t user_id() noexcept;  // effective
void random_bytes(void* target, std::size_t bytes) noexcept;
std::uint64_t wall_time_ns() noexcept;  // since 1970: for labels alone
void sleep_us(unsigned microseconds) noexcept;

}  // namespace berth::internal::os

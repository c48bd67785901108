// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// Files of data: opened, read at a place, mapped and written. (Files that appear whole are in os/file/new_file.h.) What a signal interrupts is done again, and what is
// done in part is finished.
namespace berth::internal::os {

// What tells whether a file is still the one it was. Its time of change is that of its bytes: a file that gets another name, or loses its own,
// is the same.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::uint64_t modified_ns = 0;

  bool same_file(const FileStamp& other) const noexcept { return device == other.device && inode == other.inode; }
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

enum class OpenFor : unsigned char { read, read_write, create };  // create: made when it is not there, else emptied

// Fails for what is not a regular file (`unsupported`), and never waits for one.
Result<Descriptor> open_data(const char* path, OpenFor use) noexcept;
Result<FileStamp> stamp_of(int descriptor) noexcept;
Result<FileStamp> stamp_of_path(const char* path) noexcept;  // of what the name leads to

// Reads until `bytes` are there or the file ends, and says how many there were. It needs no mapping: a file that was cut is a short answer.
Result<std::size_t> read_at(int descriptor, std::uint64_t offset, void* target, std::size_t bytes) noexcept;
Status write_at(int descriptor, std::uint64_t offset, const void* source, std::size_t bytes) noexcept;
// The file has that size, and its range room on the disk where the file system can promise it.
Status set_data_size(int descriptor, std::uint64_t bytes) noexcept;

// Offsets of mappings are multiples of the page size.
enum class Mapping : unsigned char { read, write, private_write };
Result<void*> map_data(int descriptor, std::uint64_t offset, std::size_t bytes, Mapping mapping) noexcept;
// Gives every page that the range touches memory, or says why a touch of it would end in a signal. True where the kernel could do it; before
// Linux 5.14 it cannot, and nothing is known.
Result<bool> populate(const void* address, std::size_t bytes, bool write) noexcept;
Status write_back(void* address, std::size_t bytes) noexcept;  // msync: waits

// Hints: what the kernel cannot do is no error. `dont_need` takes the pages from this process, and their changes with them when private.
enum class Advice : unsigned char { will_need, sequential, huge_pages, dont_need };
void advise(void* address, std::size_t bytes, Advice advice) noexcept;
void forget_cached(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;  // of the page cache, where nobody else needs it

}  // namespace berth::internal::os

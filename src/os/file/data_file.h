// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// Data files: opened, read at an offset, mapped and written. (Files that are created atomically are in
// os/file/new_file.h.) Interrupted calls are restarted, and short reads and writes are completed. Any thread.
namespace berth::internal::os {

// Identifies a file and its content, to detect changes. The time is the modification time of its bytes: a file
// that is renamed or unlinked has the same stamp.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::uint64_t modified_ns = 0;

  bool same_file(const FileStamp& other) const noexcept { return device == other.device && inode == other.inode; }
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

enum class OpenFor : unsigned char { read, read_write, create };  // create: created, or truncated if it exists

// Fails with `unsupported` when the path is not a regular file, and never blocks on one that is not.
Result<Descriptor> open_data(const char* path, OpenFor use) noexcept;
Result<FileStamp> stamp_of(int descriptor) noexcept;
Result<FileStamp> stamp_of_path(const char* path) noexcept;  // follows links

// Reads until `bytes` are read or the file ends, and returns the count. Unlike a mapping, a truncated file
// gives a short count and not a signal.
Result<std::size_t> read_at(int descriptor, std::uint64_t offset, void* target, std::size_t bytes) noexcept;
Status write_at(int descriptor, std::uint64_t offset, const void* source, std::size_t bytes) noexcept;
// The bytes that this user can still write to the file's disk; nothing where its file system does not say.
std::optional<std::uint64_t> free_bytes(int descriptor) noexcept;
// Sets the size of a file that has `had` bytes, at most that many, and preallocates disk space for the others where the
// file system supports it. After a failure the file has `had` bytes again.
Status set_data_size(int descriptor, std::uint64_t bytes, std::uint64_t had = 0) noexcept;

// The offset of a mapping is a multiple of the page size.
enum class Mapping : unsigned char { read, write, private_write };
Result<void*> map_data(int descriptor, std::uint64_t offset, std::size_t bytes, Mapping mapping) noexcept;
// Faults in every page of the range, or fails where an access would raise a signal. False before Linux 5.14,
// which cannot do this: nothing is known then.
Result<bool> populate(const void* address, std::size_t bytes, bool write) noexcept;
Status write_back(void* address, std::size_t bytes) noexcept;  // msync, synchronous

// Hints; it is not an error when the kernel cannot follow them. `dont_need` drops the pages from this process,
// and private changes with them.
enum class Advice : unsigned char { will_need, sequential, huge_pages, dont_need };
void advise(void* address, std::size_t bytes, Advice advice) noexcept;
// from the page cache, where no other process uses it
void forget_cached(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

}  // namespace berth::internal::os

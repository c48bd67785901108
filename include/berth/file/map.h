// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/export.h"
#include "berth/storage/storage.h"

// Files as storages: the bytes are those of the file, read when they are first touched, and nothing is copied.
//
//     Storage m = map_file("data.bin", {1 << 20}, DType::f32);                        // to read
//     Storage all = map_file("data.bin", DType::f32);                                 // its shape from the file's size
//     Storage out = map_file("new.bin", {4096}, DType::u8, FileMode::create);
//     out.fill(7);
//     flush_mapped(out);                                                              // is on the disk now
//
// A mapping lives as long as the last storage over it, whatever becomes of the name: a file that is removed or replaced meanwhile keeps
// its old bytes for those who have it mapped. A storage to read is read-only: writing through it is an AccessError, and no signal.
//
// Others can cut the file, or write into it. Wherever berth itself touches the bytes (copies, fills, equal, item) it looks first, and
// answers with file_truncated, file_changed or io_error. Your own code, through data(), gets what the kernel does: SIGBUS for bytes that are
// no longer there, also in a private copy. Where a file may be cut under you, ask mapped_state first, or read it and not map it. What happens
// between a look and the touch nobody can exclude.
//
// Any thread may use different storages of one mapping. flush_mapped and the hints are safe from any thread.
namespace berth {

enum class FileMode : unsigned char {
  read,          // the storage is read-only
  read_write,    // writes reach the file, and others who have it mapped
  create,        // a new file of exactly that size, of zeros, or one of that name emptied first; then as read_write
  private_copy,  // writes stay in this process's memory, page by page, and never reach the file
};
BERTH_EXPORT std::string_view to_string(FileMode mode) noexcept;

// How the bytes will be used. Hints: a kernel that cannot follow them is no error.
struct MapOptions {
  std::uint64_t offset = 0;     // of the first element, in bytes from the start of the file; a multiple of alignment_of(dtype)
  bool prefetch = false;        // read it all ahead, beginning now
  bool sequential = false;      // it is read from front to back: read further ahead, keep less behind
  bool huge_pages = false;      // where the file system has them
  bool expect_changes = false;  // others write to the file on purpose: only a cut is an error
};

// Throws AccessError: not_found, permission_denied, already_exists; DeviceError: unsupported for what is not a regular file (it is never waited
// for), io_error{os_error}, out_of_memory when there is no address space or no room on the disk; FormatError: file_truncated{have, need};
// ArgumentError: misaligned, out_of_bounds. All name the path. Then nothing was made or changed, but that `create` may have made the file, or emptied it.
BERTH_EXPORT Storage map_file(const std::string& path, const Shape& shape, DType dtype, FileMode mode = FileMode::read,
                              const MapOptions& options = {}, Site site = Site::here());

// As many elements, in one dimension, as the file has from the offset on. Throws FormatError(size_mismatch) when that is not a whole number.
// Not with FileMode::create, which must be told a size: ArgumentError.
BERTH_EXPORT Storage map_file(const std::string& path, DType dtype, FileMode mode = FileMode::read, const MapOptions& options = {},
                              Site site = Site::here());

// What was written through the storage is on the disk when this returns. Nothing to do for what is read or private. Throws
// DeviceError(io_error), ArgumentError when the storage is not mapped.
BERTH_EXPORT void flush_mapped(const Storage& storage);

// Flushes, and lets go now: the storage has no elements afterwards. Throws AccessError(busy) while other handles or views of it are there.
BERTH_EXPORT void close_mapped(Storage& storage);

// Reads the elements ahead, in the background. A hint.
BERTH_EXPORT void prefetch_mapped(const Storage& storage);

// Takes the memory of the elements' pages back, for whoever goes through a file once and copies it elsewhere. They are read again when they
// are touched again; what was written is not lost. A private copy is left as it is: its changes are nowhere else.
BERTH_EXPORT void drop_mapped(const Storage& storage);

// Whether the file is what it was when it was mapped, as its size, its time of change and its name tell.
enum class FileState : unsigned char {
  current,
  replaced,   // the name belongs to another file now, or to none; the bytes here are still good
  changed,    // someone wrote into it
  truncated,  // it is shorter than it was
};
BERTH_EXPORT std::string_view to_string(FileState state) noexcept;
BERTH_EXPORT FileState mapped_state(const Storage& storage);

// The path under which it was opened; empty for other storages.
BERTH_EXPORT std::string mapped_path(const Storage& storage);

}  // namespace berth

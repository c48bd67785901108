// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/export.h"
#include "berth/storage/storage.h"

// Memory-mapped files as storages: the bytes are those of the file, paged in on first touch, and nothing is
// copied.
//
//     Storage m = map_file("data.bin", {1 << 20}, DType::f32);                        // to read
//     Storage all = map_file("data.bin", DType::f32);                                 // its shape from the file's size
//     Storage out = map_file("new.bin", {4096}, DType::u8, FileMode::create);
//     out.fill(7);
//     flush_mapped(out);                                                              // is on the disk now
//
// A mapping lives as long as the last storage over it, whatever becomes of the path: a file that is removed or
// replaced meanwhile keeps its old bytes for those who have it mapped. A storage mapped to read is read-only:
// writing through it throws AccessError and raises no signal.
//
// Others can truncate the file, or write to it. Wherever berth itself touches the bytes (copies, fills, equal,
// item, saving) that is an error, whenever it happens, and never a signal: file_truncated, file_changed or io_error;
// the target of a copy may then be written in part. Your own code, through data(), gets what the kernel does: SIGBUS
// for bytes past the end of the file, also in a private copy. So does whoever gets the address from you, such as the
// consumer of a DLPack tensor. Where a file may be truncated under you, call mapped_state first, or read the file
// instead of mapping it. The race between that test and the access remains.
//
// Different threads may use different storages of one mapping. flush_mapped and the hints may be called from
// any thread.
namespace berth {

enum class FileMode : unsigned char {
  read,          // the storage is read-only
  read_write,    // writes reach the file, and other processes that have it mapped
  create,        // a new file of exactly that size, of zeros; an existing one is truncated first; then as
                 // read_write
  private_copy,  // copy-on-write: writes stay in this process's memory, page by page, and never reach the file
};
BERTH_EXPORT std::string_view to_string(FileMode mode) noexcept;

// How the bytes will be used. Except for the offset and `may_grow` these are hints: a kernel that cannot follow them
// is no error.
struct MapOptions {
  std::uint64_t offset = 0;     // of the first element, in bytes from the start of the file; a multiple of
                                // alignment_of(dtype)
  bool prefetch = false;        // start reading all of it in the background
  bool sequential = false;      // accesses go from front to back: read further ahead, cache less behind
  bool huge_pages = false;      // where the file system has them
  bool may_grow = false;        // read_write: a file that is too short for the shape is lengthened, with zeros;
                                // nobody else may change its size meanwhile
  bool expect_changes = false;  // others write to the file on purpose: only truncation is an error
};

// Throws AccessError: not_found, permission_denied, already_exists; DeviceError: unsupported for what is not a
// regular file (opening one never blocks), io_error{os_error}, out_of_memory when there is no address space or
// no disk space; FormatError: file_truncated{have, need}; ArgumentError: misaligned, out_of_bounds. All name
// the path. ArgumentError(invalid_argument) for `may_grow` where writes do not reach the file. Nothing is left behind,
// except that `create` may have created the file, or truncated it, and that `may_grow` may have lengthened it.
BERTH_EXPORT Storage map_file(const std::string& path, const Shape& shape, DType dtype, FileMode mode = FileMode::read,
                              const MapOptions& options = {}, Site site = Site::here());

// Maps as many elements, in one dimension, as the file has from the offset on. Throws
// FormatError(size_mismatch) when that is not a whole number, and ArgumentError with FileMode::create, which
// needs a size.
BERTH_EXPORT Storage map_file(const std::string& path, DType dtype, FileMode mode = FileMode::read, const MapOptions& options = {},
                              Site site = Site::here());

// Writes everything that was written through the storage to disk before it returns. Does nothing for read-only
// and private mappings. Throws DeviceError(io_error), ArgumentError when the storage is not mapped.
BERTH_EXPORT void flush_mapped(const Storage& storage);

// Starts reading the elements in the background. A hint.
BERTH_EXPORT void prefetch_mapped(const Storage& storage);

// Drops the elements' pages from memory, for callers that go through a file once and copy it elsewhere. The
// pages are read again on the next touch; what was written is not lost. A private copy is left as it is,
// because its changes exist only in memory.
BERTH_EXPORT void drop_mapped(const Storage& storage);

// Whether the file is still the one that was mapped, judged by its size, its modification time and its path.
enum class FileState : unsigned char {
  current,
  replaced,   // the path leads to another file, or to none; the mapped bytes are still valid
  changed,    // it was written to
  truncated,  // it is shorter than it was
};
BERTH_EXPORT std::string_view to_string(FileState state) noexcept;
BERTH_EXPORT FileState mapped_state(const Storage& storage);

// The path under which it was opened; empty for other storages.
BERTH_EXPORT std::string mapped_path(const Storage& storage);

}  // namespace berth

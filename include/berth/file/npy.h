// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "berth/export.h"
#include "berth/file/map.h"
#include "berth/file/safetensors.h"
#include "berth/file/tensor_entry.h"

// NumPy's files: .npy, one array, and .npz, several of them in a zip archive. Any thread.
//
//     Storage x = map_npy("x.npy");                       // mapped, read-only
//     save_npy("y.npy", y);
//     NpzFile all = open_npz("data.npz");  Storage w = all["w"];
//     save_npz("out.npz", {{"w", w}, {"b", b}});
//
// An array in Fortran order becomes a storage with the strides of that order; it is not transposed. Versions 1,
// 2 and 3 are supported; a small parser of its own reads the header, and nothing in it is evaluated. Arrays of
// objects (pickles), structured arrays and big-endian arrays are rejected. So are bytes after the array, as in
// safetensors. NumPy has no bf16 and no f8: writing one is refused, and what other tools store as `|V2` or
// `|V1` is readable as bytes.
//
// Archives are those that numpy.savez writes: stored, not compressed. Opening one checks every number in its
// directory against the file; `verify` reads the arrays and checks their CRC-32 checksums.
namespace berth {

namespace internal::file {
struct NpzInside;
}

// Maps the array, or reads it when its offset is not a multiple of its element's size, as in SafetensorsFile.
// Throws FormatError{rule, path, offset}: format_error, unsupported_dtype, size_mismatch, limit_exceeded,
// file_truncated; as map_file otherwise.
BERTH_EXPORT Storage map_npy(const std::string& path, FileMode mode = FileMode::read, Site site = Site::here());

// What the header says, without mapping anything; the name is empty.
BERTH_EXPORT TensorEntry inspect_npy(const std::string& path);

// Replaces a file atomically, as save_safetensors does. Any layout and device; an array in Fortran order is
// written in that order, any other in C order. Throws ArgumentError(unsupported_dtype).
BERTH_EXPORT void save_npy(const std::string& path, const Storage& array);

// A handle; copies refer to the same open file. Any thread. Storages outlive it.
class BERTH_EXPORT NpzFile {
 public:
  std::span<const TensorEntry> entries() const noexcept;  // by offset in the file; names without ".npy"
  std::span<const TensorFile> files() const noexcept;     // one
  std::size_t size() const noexcept { return entries().size(); }
  const std::string& path() const noexcept;

  const TensorEntry* find(std::string_view name) const noexcept;
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  // As those of SafetensorsFile.
  Storage operator[](std::string_view name) const;
  Storage operator[](const TensorEntry& entry) const;
  Storage bytes(std::string_view name) const;
  Storage bytes(const TensorEntry& entry) const;
  Storage read(std::string_view name, const AllocatorRef& where = "cpu") const;
  Storage read(const TensorEntry& entry, const AllocatorRef& where = "cpu") const;

  FileState state() const;
  // Reads the whole file and compares the checksums. Throws FormatError{rule = "checksum", name}.
  void verify() const;

 private:
  struct State;
  friend struct internal::file::NpzInside;
  explicit NpzFile(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

BERTH_EXPORT NpzFile open_npz(const std::string& path);

// Appends ".npy" to the names. Names with '/' or ".." and duplicates are refused: ArgumentError(invalid_name,
// duplicate_value).
BERTH_EXPORT void save_npz(const std::string& path, std::span<const NamedTensor> arrays);
BERTH_EXPORT void save_npz(const std::string& path, std::initializer_list<NamedTensor> arrays);

}  // namespace berth

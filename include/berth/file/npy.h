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

// NumPy's files: .npy, one array, and .npz, several of them in a zip archive.
//
//     Storage x = open_npy("x.npy");                       // mapped, read-only
//     save_npy("y.npy", y);
//     NpzFile all = open_npz("data.npz");  Storage w = all["w"];
//     save_npz("out.npz", {{"w", w}, {"b", b}});
//
// An array in Fortran order becomes a storage with the strides of that order; nothing is turned around. Versions 1, 2 and 3 are read; the
// header is read by a small grammar of its own, and nothing in it is evaluated. Arrays of objects (pickles) are refused, and so are
// structured ones and big-endian ones. Bytes behind the array are refused, as they are for safetensors. NumPy has no bf16 and no f8: writing
// one is refused, and what other tools store as `|V2` or `|V1` is readable as bytes.
//
// Archives are those that numpy.savez writes: stored, not compressed. Opening one checks every number in its directory against the file;
// the sums (CRC-32) of its arrays are checked by `verify`, which reads them.
namespace berth {

namespace internal::file {
struct NpzInside;
}

// The array, mapped; read where its place is no multiple of its element's size, as in SafetensorsFile. Throws FormatError{rule, path,
// offset}: format_error, unsupported_dtype, size_mismatch, limit_exceeded, file_truncated; as map_file otherwise.
BERTH_EXPORT Storage open_npy(const std::string& path, FileMode mode = FileMode::read, Site site = Site::here());

// What the header says, without mapping anything; the name is empty.
BERTH_EXPORT TensorEntry inspect_npy(const std::string& path);

// Replaces a file in one step, as save_safetensors does. Any layout and device; one whose elements lie in Fortran order is written so, any
// other in C order. Throws ArgumentError(unsupported_dtype).
BERTH_EXPORT void save_npy(const std::string& path, const Storage& array);

// A handle; copies share what is open. Any thread. Storages outlive it.
class BERTH_EXPORT NpzFile {
 public:
  std::span<const TensorEntry> entries() const noexcept;  // by place in the file; names without ".npy"
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
  Storage read(std::string_view name, const Place& place = "cpu") const;
  Storage read(const TensorEntry& entry, const Place& place = "cpu") const;

  FileState state() const;
  // Reads all of it and compares the sums. Throws FormatError{rule = "checksum", name}.
  void verify() const;

 private:
  struct State;
  friend struct internal::file::NpzInside;
  explicit NpzFile(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

BERTH_EXPORT NpzFile open_npz(const std::string& path);

// Names are given ".npy"; those with '/' or "..", or twice, are refused: ArgumentError(invalid_name, duplicate_value).
BERTH_EXPORT void save_npz(const std::string& path, std::span<const NamedTensor> arrays);
BERTH_EXPORT void save_npz(const std::string& path, std::initializer_list<NamedTensor> arrays);

}  // namespace berth

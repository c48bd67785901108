// SPDX-License-Identifier: Apache-2.0
#include "berth/file/npy.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "file/numpy/npy_array.h"
#include "file/numpy/npy_header.h"
#include "file/output_file.h"
#include "file/tensors.h"

namespace berth {

using namespace internal;

using namespace internal::file;

namespace internal::file {

std::string read_front(const OpenFile& file, std::uint64_t offset, std::uint64_t bytes) {
  std::string front(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kMostNpyBytes)), '\0');
  file.read(offset, std::as_writable_bytes(std::span(front)));
  return front;
}

namespace {

bool is_in_fortran_order(const Storage& array) { return !array.is_contiguous() && turned(array).is_contiguous(); }

std::string header_of(const Storage& array, std::string_view name) {
  const std::optional<std::string> header = npy_header(array.dtype(), array.shape(), is_in_fortran_order(array));
  if (header) return *header;
  throw ArgumentError(
      ErrorCode::unsupported_dtype,
      {text::join("writing ", name.empty() ? std::string("an array") : text::quoted(name), " of ", to_string(array.dtype())),
       "NumPy has no such dtype", "convert it with to(), or write safetensors"},
      {{"dtype", to_string(array.dtype())}});
}

}  // namespace

std::uint64_t npy_bytes(const Storage& array, std::string_view name) { return header_of(array, name).size() + array.size_bytes(); }

NpyArray::NpyArray(const Storage& array, std::string_view name)
    : header_(header_of(array, name)), bytes_(is_in_fortran_order(array) ? turned(array) : array) {}

}  // namespace internal::file

namespace {

TensorEntry read_entry(const OpenFile& file) {
  return parse_npy(read_front(file, 0, file.bytes()), {.path = file.path(), .offset = 0, .bytes = file.bytes()});
}

}  // namespace

Storage map_npy(const std::string& path, FileMode mode, Site site) {
  if (mode == FileMode::create) {
    throw ArgumentError(ErrorCode::invalid_argument, {text::join("opening ", text::quoted(path), " to create it"),
                                                      "only an existing file can be opened", "save_npy writes a new one"});
  }
  const bool write = mode == FileMode::read_write;
  const auto file = OpenFile::open(path, write ? os::OpenFor::read_write : os::OpenFor::read, "opening");
  const TensorEntry entry = read_entry(*file);
  const DType dtype = dtype_of(entry);
  if (mode == FileMode::read && entry.file_offset % alignment_of(dtype) != 0) return read_tensor(*file, entry, "cpu").read_only();
  const Storage made =
      map_open(file, entry.fortran_order ? reversed(entry.shape) : entry.shape, dtype, mode, {.offset = entry.file_offset}, site);
  return entry.fortran_order ? turned(made) : made;
}

TensorEntry inspect_npy(const std::string& path) { return read_entry(*OpenFile::open(path, os::OpenFor::read, "opening")); }

void save_npy(const std::string& path, const Storage& array) {
  const NpyArray parts(array, {});
  OutputFile file(path, parts.size_bytes());
  file.write(0, std::string_view(parts.header()));
  parts.elements().write_to(file, parts.header().size());
  file.commit();
}

}  // namespace berth

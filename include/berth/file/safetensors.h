// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/export.h"
#include "berth/file/map.h"
#include "berth/file/tensor_entry.h"
#include "berth/storage/create.h"
#include "berth/storage/storage.h"

// safetensors: eight bytes with the length of a header, the header (JSON), and the tensors back to back.
// Opening reads the header and checks every rule of the format; tensors are mapped on access.
//
//     SafetensorsFile f = open_safetensors("model.safetensors");
//     Storage q = f["layer.0.weight"];                    // mapped, read-only, nothing copied
//     for (const TensorEntry& t : f.entries()) …          // in the order of their bytes
//
//     SafetensorsFile all = open_safetensors("model.safetensors.index.json");       // a model in several files
//
//     save_safetensors("out.safetensors", {{"w", w}, {"b", b}});
//
// A SafetensorsFile is a handle; copies refer to the same open files. It may be used from any thread. Storages
// outlive it.
namespace berth {

namespace internal::file {
struct SafetensorsInside;
}

struct SafetensorsOptions {
  // Accepts possible extensions of the format: unknown members of a tensor, which are skipped, and unknown
  // dtypes, whose tensors are listed and readable as bytes. In an index, accepts a wrong total_size. Everything
  // else is still rejected.
  bool lax = false;
};

class BERTH_EXPORT SafetensorsFile {
 public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  // All tensors, by file and then by offset.
  std::span<const TensorEntry> entries() const noexcept;
  // The files that hold them: one, or those that an index names, sorted by name.
  std::span<const TensorFile> files() const noexcept;
  std::size_t size() const noexcept { return entries().size(); }
  std::uint64_t tensor_bytes() const noexcept;  // of all tensors
  const Metadata& metadata() const noexcept;    // __metadata__, in order; for a sharded model, that of the
                                                // first file
  const std::string& path() const noexcept;     // what was opened

  const TensorEntry* find(std::string_view name) const noexcept;  // null if not found
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }

  // The tensor, mapped and read-only. A tensor whose offset is not a multiple of its element's size cannot be
  // mapped, and is read instead (see is_mapped()). Throws AccessError(not_found),
  // ArgumentError(unsupported_dtype) for a dtype that berth lacks (use bytes), FormatError: file_truncated,
  // file_changed when the file differs from what was opened; as map_file otherwise.
  Storage operator[](std::string_view name) const;
  Storage operator[](const TensorEntry& entry) const;
  // The same as u8, in one dimension, whatever its dtype.
  Storage bytes(std::string_view name) const;
  Storage bytes(const TensorEntry& entry) const;
  // Reads the tensor into memory of any device, independent of later changes to the file. Throws as above, and
  // OutOfMemory.
  Storage read(std::string_view name, const AllocatorRef& where = "cpu") const;
  Storage read(const TensorEntry& entry, const AllocatorRef& where = "cpu") const;

  // Whether the files are still those that were opened: the worst of their states.
  FileState state() const;

 private:
  struct State;
  friend struct internal::file::SafetensorsInside;
  explicit SafetensorsFile(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// Opens one file or, when the path ends in ".json", a sharded model through its index. File names in an index
// are relative to its directory and must stay inside it.
// Throws FormatError for a file that breaks a rule. Its facts are `rule` (a word for the rule, listed in
// docs/files.md), `path`, `offset` (the byte in the file) and `name` (the tensor), if known. The code is
// format_error, or size_mismatch, unsupported_dtype, limit_exceeded, file_truncated, path_escape. Throws as
// map_file for what cannot be read at all.
BERTH_EXPORT SafetensorsFile open_safetensors(const std::string& path, const SafetensorsOptions& options = {});

// ---- Writing. A file is replaced atomically: it appears under its path once it is complete and on disk.
// Readers that have the old file open or mapped keep its bytes. Until then the path is unchanged, and after a
// failure or a crash no temporary file is left.
//
// Tensors are ordered so that each one whose size is a multiple of the alignment begins at a multiple of it,
// and every tensor at a multiple of its element's size. The format allows no gaps: the header is padded to the
// alignment, and the order of the tensors does the rest.

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape = {};
  std::string format_dtype = {};  // a dtype of the format that berth lacks; the bytes are then passed as u8
};

struct SafetensorsWriteOptions {
  std::size_t alignment = 4096;  // of the data in the file: a power of two, at most 2 MiB
  SafetensorsFile::Metadata metadata = {};
};

// Writes a file whose tensors are known before their bytes are. `write` takes them in any order, from any
// device, so that they need not be in memory at the same time:
//
//     SafetensorsWriter out("out.safetensors", {{"w", DType::bf16, {4096, 4096}}});
//     out.write("w", w.to(DType::bf16));
//     out.commit();
//
// Not thread-safe. Without commit no file is left.
class BERTH_EXPORT SafetensorsWriter {
 public:
  // Throws ArgumentError: duplicate_value, invalid_name (not UTF-8, NUL, or "__metadata__"), unsupported_dtype
  // (c128), limit_exceeded for a header past 100 MB, invalid_alignment; as map_file for what cannot be written.
  SafetensorsWriter(const std::string& path, std::vector<TensorSpec> tensors, const SafetensorsWriteOptions& options = {});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Throws ArgumentError: invalid_name for a tensor that was not announced or is already written, size_mismatch
  // for another shape or dtype.
  void write(std::string_view name, const Storage& tensor);
  // Throws ArgumentError(undefined_value) while a tensor is missing.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct NamedTensor {
  std::string name;
  Storage storage;
};

// Writes a whole file in one call.
BERTH_EXPORT void save_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                                   const SafetensorsWriteOptions& options = {});
BERTH_EXPORT void save_safetensors(const std::string& path, std::initializer_list<NamedTensor> tensors,
                                   const SafetensorsWriteOptions& options = {});

// ---- The format's dtypes.

struct SafetensorsDType {
  std::string_view name;  // "BF16"
  int bits;               // of one element; fewer than eight for some dtypes that berth lacks
  std::optional<DType> dtype;
};
BERTH_EXPORT std::span<const SafetensorsDType> safetensors_dtypes() noexcept;

}  // namespace berth

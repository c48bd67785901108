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

// safetensors: eight bytes with the length of a header, the header (JSON), and the tensors one after another. Opening reads the header and
// checks every rule of the format; tensors are mapped when they are asked for.
//
//     SafetensorsFile f = open_safetensors("model.safetensors");
//     Storage q = f["layer.0.weight"];                    // mapped, read-only, nothing copied
//     for (const TensorEntry& t : f.entries()) …          // in the order of their bytes
//
//     SafetensorsFile all = open_safetensors("model.safetensors.index.json");       // a model in several files
//
//     save_safetensors("out.safetensors", {{"w", w}, {"b", b}});
//
// A SafetensorsFile is a handle; copies share what is open. It may be used from any thread. Storages outlive it.
namespace berth {

namespace internal::file {
struct SafetensorsInside;
}

struct SafetensorsOptions {
  // Accepts what the format may gain: members of a tensor that are not known, which are passed over, and dtypes that are not known, whose
  // tensors are listed and readable as bytes. In an index, a wrong total_size. Everything else is refused all the same.
  bool lax = false;
};

class BERTH_EXPORT SafetensorsFile {
 public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  // All tensors, by file and then by place in it.
  std::span<const TensorEntry> entries() const noexcept;
  // The files they are in: one, or those that an index names, in the order of their names.
  std::span<const TensorFile> files() const noexcept;
  std::size_t size() const noexcept { return entries().size(); }
  std::uint64_t tensor_bytes() const noexcept;  // of all tensors
  const Metadata& metadata() const noexcept;    // what is under __metadata__, in order; of a model in several files, that of the first
  const std::string& path() const noexcept;     // what was opened

  const TensorEntry* find(std::string_view name) const noexcept;  // null when there is none
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }

  // The tensor, mapped and read-only. One whose place in the file is no multiple of its element's size cannot be shown so, and is read
  // (is_mapped() tells). Throws AccessError(not_found), ArgumentError(unsupported_dtype) for a dtype that berth lacks (use bytes),
  // FormatError: file_truncated, file_changed when the file is not what was opened; as map_file otherwise.
  Storage operator[](std::string_view name) const;
  Storage operator[](const TensorEntry& entry) const;
  // The same as u8, in one dimension, whatever its dtype.
  Storage bytes(std::string_view name) const;
  Storage bytes(const TensorEntry& entry) const;
  // Read into memory, on any device: immune to what becomes of the file. Throws as above, and OutOfMemory.
  Storage read(std::string_view name, const Place& place = "cpu") const;
  Storage read(const TensorEntry& entry, const Place& place = "cpu") const;

  // Whether the files are what was opened: the worst of their states.
  FileState state() const;

 private:
  struct State;
  friend struct internal::file::SafetensorsInside;
  explicit SafetensorsFile(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// Opens one file, or, when the path ends in ".json", a model in several files through its index. The names of files in an index are relative to
// its folder and stay inside it.
// Throws FormatError for a file that breaks a rule. Its facts are `rule` (a word for the rule, listed in docs/files.md), `path`, `offset` (the
// byte in the file) and `name` (the tensor), where they are known. The code is format_error, or size_mismatch, unsupported_dtype,
// limit_exceeded, file_truncated, path_escape. Throws as map_file for what cannot be read at all.
BERTH_EXPORT SafetensorsFile open_safetensors(const std::string& path, const SafetensorsOptions& options = {});

// ---- Writing. A file appears under its name when it is whole and on the disk, in the place of one that was there; who has that one open
// or mapped keeps its bytes. Until then nothing is under the name that was not there before, and after a failure, or a crash, nothing is
// left beside it.
//
// Tensors are laid out so that those whose size is a multiple of the alignment begin at one, and every one at a multiple of its element's
// size. The format allows no gaps: the header is padded to the alignment, and the order of the tensors does the rest.

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape = {};
  std::string format_dtype = {};  // one of the format that berth lacks; the bytes are then given as u8
};

struct SafetensorsWriteOptions {
  std::size_t alignment = 4096;  // of the data in the file: a power of two, at most 2 MiB
  SafetensorsFile::Metadata metadata = {};
};

// A file whose tensors are known before their bytes are. `write` takes them in any order, from any device, one after another in memory:
//
//     SafetensorsWriter out("out.safetensors", {{"w", DType::bf16, {4096, 4096}}});
//     out.write("w", w.to(DType::bf16));
//     out.commit();
//
// Not for two threads at once. Without commit nothing is left.
class BERTH_EXPORT SafetensorsWriter {
 public:
  // Throws ArgumentError: duplicate_value, invalid_name (not UTF-8, NUL, or "__metadata__"), unsupported_dtype (c128), limit_exceeded for a header past
  // 100 MB, invalid_alignment; as map_file for what cannot be written.
  SafetensorsWriter(const std::string& path, std::vector<TensorSpec> tensors, const SafetensorsWriteOptions& options = {});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Throws ArgumentError: invalid_name for one that was not announced or is there already, size_mismatch for another shape or dtype.
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

// All of it at once.
BERTH_EXPORT void save_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                                   const SafetensorsWriteOptions& options = {});
BERTH_EXPORT void save_safetensors(const std::string& path, std::initializer_list<NamedTensor> tensors,
                                   const SafetensorsWriteOptions& options = {});

// ---- The format's dtypes.

struct SafetensorsDType {
  std::string_view name;  // "BF16"
  int bits;               // of one element; fewer than eight for some that berth lacks
  std::optional<DType> dtype;
};
BERTH_EXPORT std::span<const SafetensorsDType> safetensors_dtypes() noexcept;

}  // namespace berth

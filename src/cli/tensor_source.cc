// SPDX-License-Identifier: Apache-2.0
#include "cli/tensor_source.h"

#include <utility>

namespace berth::internal::cli {

TensorSource::Npy::Npy(const std::string& path) : entries{inspect_npy(path)} {
  const std::size_t slash = path.rfind('/') + 1;  // 0 if there is none
  entries[0].name = path.substr(slash, path.size() - slash - std::string_view(".npy").size());
  files.push_back({.path = path, .size_bytes = entries[0].file_offset + entries[0].size_bytes, .data_offset = entries[0].file_offset});
}

TensorSource::File TensorSource::open(const std::string& path, bool lax) {
  if (path.ends_with(".npy")) return Npy(path);
  if (path.ends_with(".npz")) return open_npz(path);
  return open_safetensors(path, {.lax = lax});
}

TensorSource::TensorSource(const std::string& path, bool lax) : file_(open(path, lax)), index_(path.ends_with(".json")) {}

std::string_view TensorSource::format() const noexcept {
  constexpr std::string_view kNames[] = {"safetensors", "npz", "npy"};
  return index_ ? "safetensors index" : kNames[file_.index()];
}

std::span<const TensorEntry> TensorSource::entries() const noexcept {
  if (const auto* const one = std::get_if<Npy>(&file_)) return one->entries;
  if (const auto* const zip = std::get_if<NpzFile>(&file_)) return zip->entries();
  return std::get_if<SafetensorsFile>(&file_)->entries();
}

std::span<const TensorFile> TensorSource::files() const noexcept {
  if (const auto* const one = std::get_if<Npy>(&file_)) return one->files;
  if (const auto* const zip = std::get_if<NpzFile>(&file_)) return zip->files();
  return std::get_if<SafetensorsFile>(&file_)->files();
}

SafetensorsFile::Metadata TensorSource::metadata() const {
  const auto* const file = std::get_if<SafetensorsFile>(&file_);
  return file == nullptr ? SafetensorsFile::Metadata() : file->metadata();
}

Storage TensorSource::tensor(const TensorEntry& entry) const {
  if (const auto* const one = std::get_if<Npy>(&file_)) return map_npy(one->files[0].path);
  if (const auto* const zip = std::get_if<NpzFile>(&file_)) return (*zip)[entry];
  return (*std::get_if<SafetensorsFile>(&file_))[entry];
}

Storage TensorSource::bytes(const TensorEntry& entry) const {
  if (const auto* const one = std::get_if<Npy>(&file_))
    return map_file(one->files[0].path, {entry.size_bytes}, DType::u8, FileMode::read, {.offset = entry.file_offset});
  if (const auto* const zip = std::get_if<NpzFile>(&file_)) return zip->bytes(entry);
  return std::get_if<SafetensorsFile>(&file_)->bytes(entry);
}

void TensorSource::verify() const {
  if (const auto* const zip = std::get_if<NpzFile>(&file_)) zip->verify();
}

}  // namespace berth::internal::cli

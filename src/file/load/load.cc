// SPDX-License-Identifier: Apache-2.0
#include "berth/file/load.h"

#include "file/load/load_tensors.h"
#include "file/numpy/npy_array.h"
#include "file/numpy/npy_header.h"
#include "file/numpy/npz_inside.h"
#include "file/safetensors/safetensors_inside.h"
#include "file/tensor_set.h"

// Adapters from each format to the loader: its open files and their tensors.
namespace berth {

using namespace internal;
using namespace internal::file;

namespace {

// The set must outlive the load.
LoadedTensors load_set(const file::TensorSet& set, const AllocatorRef& where, const LoadOptions& options, const Site& site) {
  load::LoadSource source{.files = {},
                          .entries = set.entries(),
                          .mapped = [&](const TensorEntry& entry) { return entry.dtype ? set.tensor(entry) : set.bytes(entry); },
                          .require_unchanged =
                              [&] {
                                for (std::size_t i = 0; i < set.files().size(); ++i) set.file(i).require_unchanged();
                              }};
  for (std::size_t i = 0; i < set.files().size(); ++i) source.files.push_back({set.file(i).descriptor(), set.file(i).path(), {}});
  return load::load_tensors(std::move(source), where, options, site);
}

LoadedTensors load_npy(const std::string& path, const AllocatorRef& where, const LoadOptions& options, const Site& site) {
  const auto file = file::OpenFile::open(path, os::OpenFor::read, "opening");
  TensorEntry entry = file::parse_npy(file::read_front(*file, 0, file->bytes()), {.path = path, .offset = 0, .bytes = file->bytes()});
  const std::uint64_t data_offset = entry.file_offset;
  const file::TensorSet set(path, {std::move(entry)}, {}, {{path, file->bytes(), data_offset}}, {file});
  return load_set(set, where, options, site);
}

}  // namespace

LoadedTensors load(const SafetensorsFile& file, const AllocatorRef& where, const LoadOptions& options, Site site) {
  const SafetensorsFile kept = file;  // another thread may drop its handle
  return load_set(SafetensorsInside::set(kept), where, options, site);
}

LoadedTensors load(const NpzFile& file, const AllocatorRef& where, const LoadOptions& options, Site site) {
  const NpzFile kept = file;
  return load_set(NpzInside::set(kept), where, options, site);
}

LoadedTensors load(const std::string& path, const AllocatorRef& where, const LoadOptions& options, Site site) {
  if (path.ends_with(".npy")) return load_npy(path, where, options, site);
  if (path.ends_with(".npz")) return berth::load(open_npz(path), where, options, site);
  return berth::load(open_safetensors(path), where, options, site);
}

}  // namespace berth

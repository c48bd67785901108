// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "berth/file/load.h"
#include "file/load/load_job.h"

// The format-independent loader: what the formats pass to it, and the steps common to all of them. Any thread.
namespace berth::internal::file::load {

struct LoadSource {
  std::vector<LoadFile> files;
  std::span<const TensorEntry> entries;               // `file` of each is an index into `files`
  std::function<Storage(const TensorEntry&)> mapped;  // the tensor over the mapped file, as its dtype or as
                                                      // bytes
  std::function<void()> require_unchanged;            // throws when a file differs from what was opened
  std::size_t piece_bytes = 0;                        // 0: by the size of the load; else a multiple of
                                                      // kPartAlignment (tests)
  std::size_t least_in_place = 0;                     // 0: the default of LoadJob
};

LoadedTensors load_tensors(LoadSource source, const AllocatorRef& where, const LoadOptions& options, const Site& site);

// The dtype of a tensor after loading.
DType loaded_dtype(const TensorEntry& entry, const LoadOptions& options) noexcept;

// Resolves LoadMode::automatic.
LoadMode choose_mode(std::uint64_t file_bytes, std::uint64_t available_bytes) noexcept;

}  // namespace berth::internal::file::load

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "berth/file/load.h"
#include "file/load/load_job.h"

// Loading beneath the formats: what they hand over, and the steps that are the same for all of them.
namespace berth::internal::file::load {

struct LoadSource {
  std::vector<LoadFile> files;
  std::span<const TensorEntry> entries;               // their file numbers are those of `files`
  std::function<Storage(const TensorEntry&)> mapped;  // the tensor over the mapped file, as berth's dtype or as bytes
  std::function<void()> require_unchanged;            // throws when a file is not what was opened
  std::size_t piece_bytes = 0;                        // 0: by the size of the load; else a multiple of kPartAlignment, for tests
  std::size_t least_in_place = 0;                     // 0: as the job has it
};

LoadedTensors load_tensors(LoadSource source, const Place& place, const LoadOptions& options, const Site& site);

// The dtype that a tensor has when it is loaded.
DType loaded_dtype(const TensorEntry& entry, const LoadOptions& options) noexcept;

// What `automatic` stands for.
LoadMode choose_mode(std::uint64_t file_bytes, std::uint64_t available_bytes) noexcept;

}  // namespace berth::internal::file::load

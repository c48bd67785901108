// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/backend.h"
#include "copy/route/route_stage.h"
#include "file/load/load_plan.h"
#include "file/load/load_progress.h"
#include "os/file/descriptor.h"
#include "os/file/leased_file.h"

// The state common to the threads of one load, independent of the format: open files, the tensors to load, and
// their targets. Nothing here changes while they run, except the counters.
namespace berth::internal::file::load {

struct LoadFile {
  int descriptor = -1;                       // open for as long as the load runs
  std::string path;                          // for errors
  os::Descriptor direct = {};                // the same file opened for direct I/O, if the job uses it
  std::optional<os::LeasedFile> still = {};  // the same file, leased and mapped: conversions read from it
                                             // directly
};

struct LoadTarget {
  std::string_view name;  // for errors
  std::byte* data = nullptr;
};

struct LoadJob {
  std::vector<LoadFile> files;
  std::vector<FileTensor> tensors;
  std::vector<LoadTarget> targets;  // parallel to `tensors`; memory for all elements, in the dtype at_target,
                                    // on `device`
  Backend* device = nullptr;
  bool direct = false;  // all files are read with direct I/O
  LoadPlan plan = {};
  std::size_t piece_bytes = 0;  // that the plan was made with
  // For smaller ranges, a read costs less than setting up page tables.
  std::size_t least_in_place = std::size_t{1} << 20;
  Progress* progress = nullptr;
  std::atomic<std::size_t> staging_bytes = 0;  // host and device memory beside the targets; relaxed: a counter

  bool to_host() const noexcept { return device->properties().abilities.host_access; }

  // Temporary memory for the duration of the load, counted in staging_bytes. Throws OutOfMemory.
  std::unique_ptr<copy::Scratch> make_scratch(Device on, std::size_t bytes) {
    auto made = std::make_unique<copy::Scratch>(on, bytes);
    staging_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return made;
  }
};

// Loads everything, on at most `threads` threads; returns how many were used. On return all tensors are
// complete and visible to every stream. Throws, once nothing runs any more and all staging is freed:
// FormatError(file_truncated) with path, tensor and offset where a file ends too early; DeviceError for a file
// or a device that fails; OutOfMemory for staging; what Progress throws.
int run_load(LoadJob& job, int threads);

}  // namespace berth::internal::file::load

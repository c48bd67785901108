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
#include "os/file/still_file.h"

// Everything that the threads of one load share, beneath the formats: files that are open, what is wanted of them, where it goes. Nothing
// here changes while they run but the counts.
namespace berth::internal::file::load {

struct LoadFile {
  int descriptor = -1;                      // open for as long as the load runs
  std::string path;                         // for errors
  os::Descriptor direct = {};               // the same for reads past the page cache, when the job makes them
  std::optional<os::StillFile> still = {};  // the same, held still: what is converted need not be read first
};

struct LoadTarget {
  std::string_view name;  // for errors
  std::byte* data = nullptr;
};

struct LoadJob {
  std::vector<LoadFile> files;
  std::vector<FileTensor> tensors;
  std::vector<LoadTarget> targets;  // of the same numbers; memory for all elements, in the dtype at_target, on `device`
  Backend* device = nullptr;
  bool direct = false;  // all files are read past the page cache
  LoadPlan plan = {};
  std::size_t piece_bytes = 0;  // that the plan was made for
  // For less, one read costs less than the kernel's tables of pages.
  std::size_t least_in_place = std::size_t{1} << 20;
  Progress* progress = nullptr;
  std::atomic<std::size_t> staging_bytes = 0;  // host and device memory beside the targets; relaxed: a count

  bool to_host() const noexcept { return device->properties().abilities.host_access; }

  // Memory for as long as the load runs, counted. Throws OutOfMemory.
  std::unique_ptr<copy::Scratch> make_scratch(Device on, std::size_t bytes) {
    auto made = std::make_unique<copy::Scratch>(on, bytes);
    staging_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return made;
  }
};

// Brings everything in, on at most so many threads; how many it was. On return all of it is there, for every stream. Throws, when nothing
// runs any more and all staging is given back: FormatError(file_truncated) with path, tensor and offset where a file ends too early;
// DeviceError for a file or a device that fails; OutOfMemory for staging; what Progress throws.
int run_load(LoadJob& job, int threads);

}  // namespace berth::internal::file::load

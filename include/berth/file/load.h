// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"
#include "berth/file/npy.h"
#include "berth/file/safetensors.h"

// Bulk loading of tensors from files onto a device, at the speed of the memory or of the bus. Any thread.
//
//     LoadedTensors model = load("model.safetensors", "cuda:0", {.dtype = DType::bf16});
//     Storage q = model["layer.0.weight"];
//     to_json(model.report());      // {"mode": "read", "threads": 8, "file_bytes": …
//
// Large tensors are split into pieces, small ones are batched, and several threads read the pieces. Host memory
// is read into directly, with conversion in the same pass if requested. Pieces for another device go through
// page-locked staging buffers of a bounded total size: while the device copies one piece, a thread reads the
// next. Dtypes are converted on the host or on the device, whichever makes fewer bytes cross the bus.
//
// When `load` returns, all tensors are complete and visible to every stream. When it throws, everything it
// allocated has been freed. Files that others change meanwhile are detected: the load throws
// FormatError(file_truncated, file_changed) and raises no signal. A load that converts dtypes may hold a
// lease on the file, so that the kernel blocks processes that open it for writing until the load is over
// (docs/loading.md).
namespace berth {

class JsonWriter;  // base/json.h

// How the bytes of a file are read.
enum class LoadMode : unsigned char {
  automatic,  // named "auto": `read`, but `direct` for more bytes than half of the available memory, which no
              // cache could keep
  map,        // tensors on `cpu` are mappings of the file: read-only, not copied, paged in on first touch. Tensors
              // that are converted, or misaligned in the file, are read. On other devices, as `read`
  read,       // through the page cache: a file that was read recently is still in memory
  direct,     // direct I/O, which bypasses the page cache and evicts nothing else from it. Where the file system
              // refuses, as `read`
};
BERTH_EXPORT std::string_view to_string(LoadMode mode) noexcept;
// Throws ArgumentError(invalid_argument).
BERTH_EXPORT LoadMode parse_load_mode(std::string_view name);

struct LoadProgress {
  std::uint64_t done_bytes = 0;  // bytes of the files that are on the device
  std::uint64_t total_bytes = 0;
};
// Called on the thread that called `load`, after some of the pieces, and once more when everything is loaded.
// Returning false stops the load, which throws Error(cancelled). What the callback throws is nested in an
// Error(callback_failed).
using ProgressCallback = std::function<bool(const LoadProgress&)>;

struct LoadOptions {
  int threads = 0;  // at most kMostCopyThreads; 0: as many as copies use (copy/threads.h). Loads to devices
                    // other than the host's use at most 8
  LoadMode mode = LoadMode::automatic;
  // Floating-point tensors (f8 to f64) are converted to this dtype, which must be one of these. Integers,
  // booleans, complex numbers and dtypes that berth lacks stay as they are. Values are rounded once, to
  // nearest, by the rules of copy/convert.h.
  std::optional<DType> dtype = {};
  ProgressCallback progress = {};
  std::function<bool(const TensorEntry&)> select = {};  // which tensors to load; by default all
};

// How a load went.
struct BERTH_EXPORT LoadReport {
  LoadMode asked_mode = LoadMode::automatic;
  LoadMode mode = LoadMode::read;  // the mode in effect; never `automatic`
  std::string mode_reason;         // why this mode was chosen
  int threads = 0;                 // that took part
  Device device;
  std::size_t tensors = 0;
  std::size_t converted = 0;  // tensors whose dtype was converted
  std::size_t mapped = 0;
  std::uint64_t file_bytes = 0;     // of the tensors, in the files
  std::uint64_t target_bytes = 0;   // of the tensors, on the device, without mapped ones
  std::uint64_t staging_bytes = 0;  // peak of staging memory, on the host and on the device
  std::uint64_t time_ns = 0;

  void write_json(JsonWriter& json) const;
};

// Tensors by name, in the order of the files. Each has its own memory, which lives as long as a storage over
// it. A tensor whose dtype berth lacks is loaded as its bytes: u8, in one dimension.
class BERTH_EXPORT LoadedTensors {
 public:
  LoadedTensors() = default;
  LoadedTensors(std::vector<NamedTensor> tensors, LoadReport report);

  std::size_t size() const noexcept { return tensors_.size(); }
  auto begin() const noexcept { return tensors_.begin(); }
  auto end() const noexcept { return tensors_.end(); }

  const Storage* find(std::string_view name) const noexcept;  // null when there is none
  const Storage& operator[](std::string_view name) const;     // throws AccessError(not_found)
  const LoadReport& report() const noexcept { return report_; }

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<std::size_t> by_name_;  // indices into tensors_, sorted by name
  LoadReport report_;
};

// Throws FormatError: file_truncated{path, tensor, offset, have, need}, file_changed; DeviceError(io_error)
// with the same facts, or the device's own error; OutOfMemory for the tensors and for staging; ArgumentError:
// unsupported_dtype, limit_exceeded for threads; and what ProgressCallback says.
BERTH_EXPORT LoadedTensors load(const SafetensorsFile& file, const AllocatorRef& where, const LoadOptions& options = {},
                                Site site = Site::here());
BERTH_EXPORT LoadedTensors load(const NpzFile& file, const AllocatorRef& where, const LoadOptions& options = {}, Site site = Site::here());
// Opens the file first, and throws as opening does: `.npz`, `.npy` (one tensor, named ""), or else safetensors,
// in one file or through its index.
BERTH_EXPORT LoadedTensors load(const std::string& path, const AllocatorRef& where, const LoadOptions& options = {},
                                Site site = Site::here());

}  // namespace berth

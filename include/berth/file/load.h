// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/json.h"
#include "berth/export.h"
#include "berth/file/npy.h"
#include "berth/file/safetensors.h"

// Many tensors at once, from files onto a device, at the speed of the memory or the bus between.
//
//     LoadedTensors model = load("model.safetensors", "cuda:0", {.dtype = DType::bf16});
//     Storage q = model["layer.0.weight"];
//     model.report().to_json();      // {"mode": "read", "threads": 8, "file_bytes": …
//
// Large tensors are cut into pieces and small ones put together, and several threads bring the pieces in. To memory of the host they are read
// straight to where they belong, converted on the way if asked. To another device they go through page-locked staging of a bounded size:
// while the device copies one piece a thread reads the next. Dtypes change on the host or on the device, whichever lets fewer bytes cross.
//
// When `load` returns, all tensors are there, for every stream. When it throws, nothing is left of it. Files that others change meanwhile
// are found out: FormatError(file_truncated, file_changed), and no signal. While dtypes change, whoever opens a file for writing may be kept
// waiting by the kernel until the load is over (docs/loading.md).
namespace berth {

// Where the bytes of a file come from.
enum class LoadMode : unsigned char {
  automatic,  // named "auto": `read`, but `direct` for more bytes than half of the memory that is available, which no cache could keep
  map,     // tensors on `cpu` are the file itself: read-only, nothing copied, read when first touched. What is converted, or misaligned in
           // the file, is read. On other devices, as `read`
  read,    // through the page cache: a file that was read before is there already
  direct,  // past the page cache, straight from the disk: nothing else is pushed out of memory. Where the file system refuses, as `read`
};
BERTH_EXPORT std::string_view to_string(LoadMode mode) noexcept;
// Throws ArgumentError(invalid_argument).
BERTH_EXPORT LoadMode parse_load_mode(std::string_view name);

struct LoadProgress {
  std::uint64_t done_bytes = 0;  // of the files, on their device by now
  std::uint64_t total_bytes = 0;
};
// Called on the thread that called `load`, after a piece now and then, and once more when everything is there. False stops the load, which
// throws Error(cancelled). What the callback throws is nested in an Error(callback_failed).
using ProgressCallback = std::function<bool(const LoadProgress&)>;

struct LoadOptions {
  int threads = 0;  // at most kMostCopyThreads; 0: as many as copies use (copy/threads.h). Other devices than the host's use no more than 8
  LoadMode mode = LoadMode::automatic;
  // Floating-point tensors (f8 to f64) become this, which must be one of them. Integers, booleans, complex numbers, and what berth has no
  // dtype for, stay as they are. Rounded once, to nearest, by the rules of copy/convert.h.
  std::optional<DType> dtype = {};
  ProgressCallback progress = {};
  std::function<bool(const TensorEntry&)> select = {};  // which tensors to load; all of them when it is left out
};

// How a load went.
struct BERTH_EXPORT LoadReport {
  LoadMode asked_mode = LoadMode::automatic;
  LoadMode mode = LoadMode::read;  // in effect; never `automatic`
  std::string mode_reason;         // why it is that one
  int threads = 0;                 // that were at work
  Device device;
  std::size_t tensors = 0;
  std::size_t converted = 0;  // of them
  std::size_t mapped = 0;
  std::uint64_t file_bytes = 0;     // of the tensors, in the files
  std::uint64_t target_bytes = 0;   // of the tensors, on the device, mapped ones not counted
  std::uint64_t staging_bytes = 0;  // the most that was held beside them, on the host and on the device
  std::uint64_t time_ns = 0;

  void write_json(JsonWriter& json) const;
  std::string to_json() const;
};

// Tensors by name, in the order of the files. Each has memory of its own, and lives as long as a storage over it. One whose dtype berth
// lacks is u8, in one dimension: its bytes.
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
  std::vector<std::size_t> by_name_;  // numbers of tensors_, in the order of their names
  LoadReport report_;
};

// Throws FormatError: file_truncated{path, tensor, offset, have, need}, file_changed; DeviceError(io_error) with the same facts, or what the
// device answers; OutOfMemory for the tensors and for staging; ArgumentError: unsupported_dtype, limit_exceeded for threads; as the
// callback says.
BERTH_EXPORT LoadedTensors load(const SafetensorsFile& file, const Place& place, const LoadOptions& options = {}, Site site = Site::here());
BERTH_EXPORT LoadedTensors load(const NpzFile& file, const Place& place, const LoadOptions& options = {}, Site site = Site::here());
// Opens the file first, and throws as that does: `.npz`, `.npy` (one tensor, named ""), or else safetensors, in one file or by its index.
BERTH_EXPORT LoadedTensors load(const std::string& path, const Place& place, const LoadOptions& options = {}, Site site = Site::here());

}  // namespace berth

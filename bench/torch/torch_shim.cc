// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "berth/base/error.h"
#include "berth/device/cuda.h"
#include "berth/memory/out_of_memory.h"
#include "berth/memory/pool.h"

// PyTorch's pluggable allocator on a pool, for bench/torch/programs.py: functions by name, for device 0. PyTorch calls
// them with its interpreter lock held.
namespace {

using namespace berth;

struct Shim {
  std::shared_ptr<Allocator> memory;
  std::unordered_map<CUstream_st*, Stream> streams;
};

Shim& shim() {
  static auto* const made = new Shim;  // PyTorch frees blocks while the process ends
  return *made;
}

StreamRef stream_of(CUstream_st* handle) {
  Stream& stream = shim().streams[handle];
  if (!stream) stream = cuda::wrap_stream("cuda:0", handle);
  return stream;
}

}  // namespace

extern "C" {

// With a limit, or 0. Before anything else.
BERTH_EXPORT void berth_shim_open(std::size_t limit_bytes) {
  shim().memory = pool("cuda:0", {.limit_bytes = limit_bytes == 0 ? SIZE_MAX : limit_bytes});
}

BERTH_EXPORT void* berth_shim_allocate(std::ptrdiff_t bytes, int, CUstream_st* stream) {
  try {
    return shim()
        .memory->allocate({.bytes = static_cast<std::size_t>(std::max<std::ptrdiff_t>(bytes, 1)), .stream = stream_of(stream)})
        .data;
  } catch (const Error& error) {
    throw std::runtime_error(std::string("out of memory: ") + error.what());  // which PyTorch passes on to Python
  }
}

BERTH_EXPORT void berth_shim_free(void* block, std::ptrdiff_t, int, CUstream_st*) {
  if (block == nullptr) return;
  if (const auto found = shim().memory->block_at(block)) shim().memory->deallocate(*found);
}

BERTH_EXPORT void berth_shim_record_stream(void* block, CUstream_st* stream) {
  if (const auto found = shim().memory->block_at(block)) shim().memory->used_on(*found, stream_of(stream));
}

BERTH_EXPORT std::size_t berth_shim_peak_held() { return shim().memory->stats().peak_committed_bytes; }
BERTH_EXPORT std::size_t berth_shim_peak_live() { return shim().memory->stats().peak_in_use_bytes; }
}

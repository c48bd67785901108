// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/device/device.h"
#include "berth/device/stream.h"
#include "berth/export.h"

struct CUstream_st;  // what CUstream and cudaStream_t point to

// What only CUDA devices have: wrapped native streams, and memory that other processes can import. This header
// includes none of CUDA's, and the functions exist in every build; without the backend, or on a machine without
// a driver, they throw DeviceError(device_unavailable) with the reason.
//
//     Stream s = cuda::wrap_stream("cuda:0", at::cuda::getCurrentCUDAStream().stream());
//     Block b = default_allocator("cuda:0")->allocate({.bytes = 1 << 20, .stream = s});
//     kernel<<<grid, block, 0, cuda::native_stream(s)>>>(b.data);
//
// All of berth's memory and streams belong to the device's primary context, which the CUDA runtime and every
// framework use. Any thread.
namespace berth::cuda {

// Wraps a stream that the program made, for berth's allocations and copies. The same handle gives the same
// stream. A null handle is the legacy default stream; the per-thread default stream is rejected, as its handle
// means another stream in each thread. Throws DeviceError(wrong_device) for a stream of another device. The
// program keeps ownership of the handle, which must outlive the last stream that wraps it and the memory that
// was freed on it; call end_stream before destroying it.
BERTH_EXPORT Stream wrap_stream(Device device, CUstream_st* handle);

// Synchronizes the stream and never uses its handle again: call it before the handle is destroyed. Any stream
// may then reuse memory that was freed on it. Throws DeviceError for a stream of another kind of device.
BERTH_EXPORT void end_stream(const Stream& stream);

// The handle of a CUDA device's stream, for kernel launches. It lives as long as the Stream does. Throws
// DeviceError(wrong_device) for streams of other devices.
BERTH_EXPORT CUstream_st* native_stream(const Stream& stream);

// The consumer's stream, as DLPack encodes it (`__dlpack__(stream=...)`): a handle as a number, 1 for the
// legacy default stream, -1 for "do not synchronize", which is no stream. The tensor must be ready for that
// stream's work, so make it wait before handing the tensor over:
//
//     dlpack_stream("cuda:0", number).wait(producer.record());
//
// Throws ArgumentError for 0, which the protocol forbids, and DeviceError(unsupported) for 2, the per-thread
// default stream.
BERTH_EXPORT Stream dlpack_stream(Device device, std::int64_t number);

// Physical memory of a device, contiguous in the address space, that several processes can map. The driver
// keeps it for as long as any process has it open: it survives the exit or death of its exporter while an
// importer has it. The bytes are initially indeterminate.
//
// Importers see all of its memory, so store nothing private in it; the pool's memory is never in one.
class BERTH_EXPORT SharedMemory {
 public:
  SharedMemory() noexcept = default;  // empty
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  // The size is rounded up to whole units of the device. Throws DeviceError: out_of_memory, or unsupported
  // where memory cannot be shared in this way.
  static SharedMemory make(Device device, std::size_t bytes);
  // Imports a file descriptor from export_descriptor(), in this process or another; the descriptor is not
  // closed. `bytes` is size_bytes() of the exporter. Throws DeviceError when the descriptor is not such a one,
  // or the size differs.
  static SharedMemory import_descriptor(Device device, int descriptor, std::size_t bytes);
  // A new file descriptor for the memory, to be passed over a socket. The caller closes it.
  int export_descriptor() const;

  void* data() const noexcept;
  std::size_t size_bytes() const noexcept;
  explicit operator bool() const noexcept { return state_ != nullptr; }

  struct State;  // src/device/cuda/shared_memory.cc

 private:
  explicit SharedMemory(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace berth::cuda

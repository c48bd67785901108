// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/device/device.h"
#include "berth/device/stream.h"
#include "berth/export.h"

struct CUstream_st;  // what CUstream and cudaStream_t point to

// What only CUDA devices have: streams that others made, and memory that other processes can open. This header needs none of CUDA's, and the
// functions are there in every build; without the backend, or on a machine without a driver, they throw
// DeviceError(device_unavailable) with the reason.
//
//     Stream s = cuda::wrap_stream("cuda:0", at::cuda::getCurrentCUDAStream().stream());
//     Block b = default_allocator("cuda:0")->allocate({.bytes = 1 << 20, .stream = s});
//     kernel<<<grid, block, 0, cuda::native_stream(s)>>>(b.data);
//
// All of berth's memory and streams are of the device's primary context, the one that the CUDA runtime and every framework use. Any thread.
namespace berth::cuda {

// A stream that the program made, for the memory and the copies of berth. The same handle gives the same stream. A null handle is the legacy
// default stream; the per-thread one is refused, as it is another in each thread. Throws DeviceError(wrong_device) for a
// stream of another device. The handle stays the program's, and must live as long as the last stream that names it, and the memory that was freed
// on it; end_stream says that it is going.
BERTH_EXPORT Stream wrap_stream(Device device, CUstream_st* handle);

// Waits for what the stream was given, and asks nothing of its handle ever after: call it before the handle is destroyed. Memory freed on it is
// everyone's then. Throws DeviceError for a stream that is not CUDA's.
BERTH_EXPORT void end_stream(const Stream& stream);

// The handle of a stream of a CUDA device, to launch kernels into. It lives as long as the Stream does. Throws DeviceError(wrong_device) for
// streams of other devices.
BERTH_EXPORT CUstream_st* native_stream(const Stream& stream);

// The stream that a consumer names by the rules of DLPack (`__dlpack__(stream=...)`), whose work the tensor must be ready for: a handle as a
// number, 1 for the legacy default stream, -1 for "do not wait", which is no stream. Make it wait before the tensor is handed over:
//
//     dlpack_stream("cuda:0", number).wait(producer.record());
//
// Throws ArgumentError for 0, which the protocol forbids, and DeviceError(unsupported) for 2, the per-thread default stream.
BERTH_EXPORT Stream dlpack_stream(Device device, std::int64_t number);

// Physical memory of a device, in one piece, that several processes can have mapped. It is held by the driver for as long as anyone has it open:
// an exporter that ends, or is killed, leaves it to those who imported it. Bytes of any value at first.
//
// A segment shares all of its memory, so give it nothing that is not to be seen; the pool's memory is never in one.
class BERTH_EXPORT Segment {
 public:
  Segment() noexcept = default;  // none
  ~Segment();
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;

  // Rounded up to whole units of the device. Throws DeviceError: out_of_memory, or unsupported where memory cannot be shared so.
  static Segment make(Device device, std::size_t bytes);
  // From a descriptor that export_descriptor() gave, in this process or another; it is not closed. `bytes` is size_bytes() of the exporter.
  // Throws DeviceError when it is none, or is of another size.
  static Segment import_descriptor(Device device, int descriptor, std::size_t bytes);
  // From a legacy IPC handle (cudaIpcMemHandle_t), which names a whole block of cudaMalloc of another process. That process must keep
  // the block until this segment is gone: nothing else does.
  using IpcHandle = std::array<std::byte, 64>;
  static Segment open_ipc(Device device, const IpcHandle& handle, std::size_t bytes);

  // A new file descriptor, the caller's to close, that stands for the memory: to be passed over a socket. Throws DeviceError(unsupported) for
  // a segment that came by a legacy handle.
  int export_descriptor() const;

  void* data() const noexcept;
  std::size_t size_bytes() const noexcept;
  explicit operator bool() const noexcept { return state_ != nullptr; }

  struct State;  // src/device/cuda/shared_memory.cc

 private:
  explicit Segment(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace berth::cuda

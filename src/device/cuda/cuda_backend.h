// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "berth/device/backend.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/cuda_stream.h"
#include "device/cuda/host_flags.h"

// A CUDA device: memory in address ranges, copies and fills in streams, and its properties. Any thread.
namespace berth::internal::device::cuda {

using Uuid = std::array<std::uint64_t, 2>;  // identifies a device, the same in every process
Uuid uuid_of(const Driver& driver, CUdevice device) noexcept;

// What the driver is queried for once, when the device is first used.
struct DeviceFacts {
  std::string name;
  std::size_t unit_bytes = 0;
  bool virtual_memory = false;
  bool exports = false;  // memory can be exported as a file descriptor
  Uuid uuid{};
  std::vector<CUdevice> reachable;      // devices whose memory this one can access
  std::vector<CUmemAccessDesc> access;  // devices that can access this one's
};

class CudaBackend final : public Backend {
 public:
  // Throws bad_alloc. REQUIRES: the context is current.
  CudaBackend(std::unique_ptr<CudaContext> context, DeviceFacts facts);

  const BackendProperties& properties() const noexcept override { return properties_; }
  MemoryInfo memory_info() const override;
  bool is_alive() const noexcept override { return context_->is_alive(); }

  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override { return memory_.reserve(bytes, alignment); }
  Status commit(void* address, std::size_t bytes) noexcept override { return memory_.commit(address, bytes); }
  Status decommit(void* address, std::size_t bytes) noexcept override { return memory_.decommit(address, bytes); }
  Status move(void* from, void* to, std::size_t bytes) noexcept override { return memory_.move(from, to, bytes); }
  Status begin_move(void* from, void* to, std::size_t bytes) noexcept override { return memory_.begin_move(from, to, bytes); }
  Status end_move(void* from, std::size_t bytes) noexcept override { return memory_.end_move(from, bytes); }
  Status release(void* address, std::size_t bytes) noexcept override { return memory_.release(address, bytes); }
  Result<void*> allocate(std::size_t bytes, std::size_t alignment) noexcept override;
  void free(void* address, std::size_t bytes, std::size_t alignment) noexcept override;

  Status copy(const Transfer& transfer, StreamRef stream) noexcept override;
  Status fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept override;
  Status copy_batch(std::span<const Transfer> transfers, StreamRef stream) noexcept override;
  Status copy_elements(const ElementCopy& copy, StreamRef stream) noexcept override;
  bool reaches(Device other) const noexcept override;
  Result<Stream> make_stream() noexcept override;

  // Wraps a stream that the program made. Throws DeviceError(wrong_device) for a stream of another device.
  Stream wrap(CUstream stream);

  CudaContext& context() const noexcept { return *context_; }
  CudaMemory& memory() noexcept { return memory_; }
  bool exports() const noexcept { return exports_; }
  const Uuid& uuid() const noexcept { return uuid_; }

 private:
  static constexpr std::size_t kInnerStreams = 8;

  // Runs submit(stream) in stream order, or synchronously. `at_once` is the synchronous form, for streams of
  // other devices.
  template <class Submit, class AtOnce>
  Status run(StreamRef stream, bool own_turn, const Submit& submit, const AtOnce& at_once) noexcept;
  template <class Submit>
  Status run_now(const Submit& submit) noexcept;
  Status check_own(const void* address, std::size_t bytes) noexcept;
  bool is_page_locked(const void* address, std::size_t bytes) noexcept;
  bool is_gathered(const Transfer& transfer) noexcept;
  Result<CUstream> inner_stream() noexcept;

  const std::unique_ptr<CudaContext> context_;
  BackendProperties properties_;
  const std::size_t total_bytes_;
  const bool exports_;
  const Uuid uuid_;
  const std::vector<CUdevice> reachable_;
  CudaMemory memory_;
  HostFlags flags_;
  // Streams for synchronous work. Several, so that threads do not wait for one another's copies.
  std::array<std::atomic<CUstream>, kInnerStreams> inner_{};
  os::Mutex mutex_;
  // by the driver's stream id
  std::map<unsigned long long, std::weak_ptr<CudaStream>> wrapped_ BERTH_GUARDED_BY(mutex_);
};

// The backend of a CUDA device. Throws as backend(), and DeviceError(wrong_device) for another kind.
CudaBackend& cuda_backend(Device device, std::string_view asked);

}  // namespace berth::internal::device::cuda

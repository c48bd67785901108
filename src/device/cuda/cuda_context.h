// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <vector>

#include "berth/base/result.h"
#include "berth/device/device.h"
#include "device/cuda/driver.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// What everything on one CUDA device stands on: its primary context, whether it still works, and events to lend. Lives until the process
// ends, like the backend that has it. Any thread.
//
// The primary context is the one that the CUDA runtime, and so every framework, uses: memory and streams of both can be used together.
// It is made current around our calls and not a moment longer, so that the caller's current device is what it was. Our calls are to the
// driver and leave the runtime's last error alone.
namespace berth::internal::device::cuda {

// A call of the driver by its plain name, as a Status. BERTH_CUDA_CALL(context, cuMemFree, address)
#define BERTH_CUDA_CALL(context, name, ...) (context).check(#name, (context).driver().name(__VA_ARGS__))

class CudaContext {
 public:
  CudaContext(const Driver& driver, Device device, CUdevice number, CUcontext handle) noexcept
      : driver_(driver), device_(device), number_(number), handle_(handle) {}
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const Driver& driver() const noexcept { return driver_; }
  Device device() const noexcept { return device_; }
  CUdevice number() const noexcept { return number_; }
  CUcontext handle() const noexcept { return handle_; }

  bool is_inherited() const noexcept { return generation_ != os::fork_generation(); }
  bool is_alive() const noexcept { return !lost_.load(std::memory_order_relaxed) && !is_inherited(); }
  Status usable() const noexcept;

  // What a call gave. After a fatal result the device is lost: nothing is asked of it again.
  Status check(const char* call, CUresult result) noexcept;

  // Events without timing, kept for the next who needs one. REQUIRES: the context is current (Scope).
  enum class Waiting : bool { spins, sleeps };  // what a thread does that waits for the event
  Result<CUevent> borrow_event(Waiting waiting) noexcept;
  void return_event(CUevent event, Waiting waiting) noexcept;  // any thread, context or not

 private:
  const Driver& driver_;
  const Device device_;
  const CUdevice number_;
  const CUcontext handle_;
  const std::uint64_t generation_ = os::fork_generation();
  std::atomic<bool> lost_{false};
  os::Mutex mutex_;
  std::vector<CUevent> events_[2] BERTH_GUARDED_BY(mutex_);  // by Waiting; not in use
};

// While it lives the context is current on this thread, and calls that a capture of a stream elsewhere would forbid are allowed: none of ours
// is meant for a captured graph unless it goes into the captured stream. Not entered when the device is lost or was opened before fork.
class Scope {
 public:
  explicit Scope(CudaContext& context) noexcept;
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  explicit operator bool() const noexcept { return status_.ok(); }
  const Failure& failure() const noexcept { return status_.failure(); }

 private:
  CudaContext& context_;
  Status status_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool mode_changed_ = false;
};

}  // namespace berth::internal::device::cuda

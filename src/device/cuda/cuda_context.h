// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/device/backend.h"
#include "berth/device/device.h"
#include "device/cuda/driver.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"
#include "os/process/no_cancel.h"

// The state of one CUDA device: its primary context, whether it is lost, and a pool of events. Lives until the
// process ends, like the backend that owns it. Any thread.
//
// The primary context is the one that the CUDA runtime, and so every framework, uses: memory and streams of
// both can be used together. It is current only during our calls, so that the caller's current device does not
// change. Our calls are to the driver and do not affect the runtime's last error.
namespace berth::internal::device::cuda {

// Calls a driver function by its plain name and returns a Status: BERTH_CUDA_CALL(context, cuMemFree, address)
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

  bool is_inherited() const noexcept { return origin_.is_inherited(); }
  bool is_alive() const noexcept { return !lost_.load(std::memory_order_relaxed) && !is_inherited(); }
  Status usable() const noexcept;

  // Turns a call's result into a Status. After a fatal result the device is lost, and is not called again.
  Status check(const char* call, CUresult result) noexcept;

  // A free list of events without timing. REQUIRES: the context is current (Scope).
  enum class Waiting : bool { spins, sleeps };  // how a thread waits for the event
  Result<CUevent> borrow_event(Waiting waiting) noexcept;
  void return_event(CUevent event, Waiting waiting) noexcept;  // any thread, context or not

 private:
  const Driver& driver_;
  const Device device_;
  const CUdevice number_;
  const CUcontext handle_;
  const os::Origin origin_;
  std::atomic<bool> lost_{false};
  os::Mutex mutex_;
  std::vector<CUevent> events_[2] BERTH_GUARDED_BY(mutex_);  // the free lists, by Waiting
};

// RAII: makes the context current on this thread, and allows calls that a stream capture elsewhere would forbid
// (relaxed capture mode): none of ours is meant for a captured graph unless it is enqueued into the captured
// stream. It fails when the device is lost or was opened before a fork.
class Scope {
 public:
  explicit Scope(CudaContext& context) noexcept;
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  explicit operator bool() const noexcept { return status_.ok(); }
  const Failure& failure() const noexcept { return status_.failure(); }

 private:
  const os::NoCancel whole_;  // the driver waits in calls that are cancellation points
  CudaContext& context_;
  Status status_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool mode_changed_ = false;
};

// Throws for a call that failed.
inline void require(const Status& done, Device device, std::string_view asked) {
  if (!done) throw_failure(done.failure(), device, asked);
}

}  // namespace berth::internal::device::cuda

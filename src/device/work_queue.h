// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>

#include "berth/device/device.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// A FIFO queue of host functions with its own worker thread: the implementation of a host stream, and of the
// host functions of a CUDA stream. Shared by the stream's handles, its events and the worker. Items are
// numbered from 1 in the order they were enqueued. Any thread. In a forked child everything throws
// DeviceError(fork_unsafe).
namespace berth::internal::device {

class WorkQueue {
 public:
  // Makes a queue and starts its worker. Throws std::system_error when no thread can be created.
  static std::shared_ptr<WorkQueue> start(Device device);

  explicit WorkQueue(Device device) : device_(device) {}

  std::uint64_t put(std::function<void()> work);
  std::uint64_t last();
  bool is_done(std::uint64_t number);
  // Throws the first exception if an item up to `number` threw it; `clear` then clears it.
  void wait(std::uint64_t number, bool clear);
  // No more items will be enqueued. The worker exits when everything has run.
  void close();

  bool is_inherited() const noexcept { return origin_.is_inherited(); }

 private:
  void work() noexcept;
  void check_process() const;
  bool take(std::function<void()>& item);
  void finish(std::exception_ptr error);

  const Device device_;
  const os::Origin origin_;
  os::Mutex mutex_;
  os::Condition changed_;
  std::deque<std::function<void()>> items_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t put_ BERTH_GUARDED_BY(mutex_) = 0;   // items enqueued so far
  std::uint64_t done_ BERTH_GUARDED_BY(mutex_) = 0;  // done_ + items_.size() + (one running) == put_
  std::exception_ptr error_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t error_at_ BERTH_GUARDED_BY(mutex_) = 0;
  bool closed_ BERTH_GUARDED_BY(mutex_) = false;
};

// The error that every inherited stream throws in a forked child.
[[noreturn]] void throw_inherited_stream(Device device);

}  // namespace berth::internal::device

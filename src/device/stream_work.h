// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The host functions of streams that the calling thread is running, as a thread-local stack, innermost first.
// (A thread that waits for one stream may run another's work.)
namespace berth::internal::device {

class RunningWork;
extern constinit thread_local const RunningWork* t_running_work;

class RunningWork {
 public:
  RunningWork(std::uint64_t stream_id, std::uint64_t point) noexcept : stream_id_(stream_id), point_(point), outer_(t_running_work) {
    t_running_work = this;
  }
  ~RunningWork() { t_running_work = outer_; }
  RunningWork(const RunningWork&) = delete;
  RunningWork& operator=(const RunningWork&) = delete;

  std::uint64_t stream_id() const noexcept { return stream_id_; }
  std::uint64_t point() const noexcept { return point_; }  // of the event after it
  const RunningWork* outer() const noexcept { return outer_; }

 private:
  const std::uint64_t stream_id_;
  const std::uint64_t point_;
  const RunningWork* const outer_;
};

}  // namespace berth::internal::device

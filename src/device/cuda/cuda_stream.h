// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "berth/device/stream.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/host_flags.h"
#include "device/work_queue.h"

// Streams and events of CUDA devices. Any thread.
//
// A host function in a stream must be able to use the device, and to block; the driver's callbacks may do
// neither. So each stream with host functions has a thread for them, and the two are synchronized in both
// directions:
//
//     stream     ... earlier work | event | wait until the flag says n | later work ...
//     thread             sleeps until the event; runs function n; counts the flag up to n
//
// While a stream is being captured into a graph, nothing here invalidates the capture: what cannot be captured
// is rejected, and an event that is recorded then is a point of the graph, which is never "done".
namespace berth::internal::device::cuda {

class CudaEvent final : public EventState {
 public:
  CudaEvent(CudaContext& context, std::shared_ptr<WorkQueue> queue, std::uint64_t number) noexcept
      : context_(context), queue_(std::move(queue)), number_(number) {}
  ~CudaEvent() override;

  bool query() override;
  void wait() override;

  // Records the event into a stream. Without this, the host functions alone decide. REQUIRES: called at most
  // once; the context is current.
  Status record(CUstream stream, bool captured) noexcept;
  void set_number(std::uint64_t number) noexcept { number_ = number; }  // before any other thread has it

  CUevent handle() const noexcept { return event_; }  // nullptr: not recorded
  bool is_captured() const noexcept { return captured_; }

 private:
  CudaContext& context_;
  CUevent event_ = nullptr;
  bool captured_ = false;
  std::shared_ptr<WorkQueue> queue_;  // may be null: the stream had no host functions
  std::uint64_t number_;              // host functions up to this one precede the event
};

class CudaStream final : public StreamState {
 public:
  enum class Owned : bool { no, yes };
  CudaStream(CudaContext& context, HostFlags& flags, CUstream stream, Owned owned)
      : StreamState(context.device()), context_(context), flags_(flags), stream_(stream), owned_(owned) {}
  ~CudaStream() override;

  CUstream handle() const noexcept { return stream_; }
  bool is_capturing() const noexcept override;

  // The owner is about to destroy the handle: synchronizes the stream, and never uses the handle again.
  void end();

 protected:
  Event do_enqueue(std::function<void()> work) override;
  Event do_record() override;
  void do_wait(const Event& event) override;
  void do_synchronize() override;

 private:
  // The thread for host functions, made for the first of them.
  struct Worker {
    explicit Worker(HostFlags& lender) noexcept : flags(lender) {}
    ~Worker() { flags.give_back(flag); }

    HostFlags& flags;
    HostFlags::Flag flag;
    std::uint32_t first = 0;  // the flag's initial value
    std::shared_ptr<WorkQueue> queue;
  };

  void check_usable(std::string_view asked) const;
  void refuse_in_capture(std::string_view asked) const;
  std::shared_ptr<Worker> worker();
  std::shared_ptr<Worker> known_worker() const noexcept;
  std::uint64_t put(const std::shared_ptr<Worker>& functions, std::function<void()> work);
  void hold_stream(const std::shared_ptr<Worker>& functions, std::uint64_t number) noexcept;

  CudaContext& context_;
  HostFlags& flags_;
  const CUstream stream_;
  const Owned owned_;
  std::atomic<bool> ended_{false};
  mutable os::Mutex mutex_;
  std::shared_ptr<Worker> worker_ BERTH_GUARDED_BY(mutex_);
};

// Downcasts the stream; nullptr when it is not a CUDA stream of that device.
CudaStream* cuda_stream(StreamRef stream, Device device) noexcept;

}  // namespace berth::internal::device::cuda

// SPDX-License-Identifier: Apache-2.0
#include "device/host_stream.h"

#include <system_error>

#include "device/work_queue.h"

namespace berth::internal::device {

namespace {

class HostEvent : public EventState {
 public:
  HostEvent(std::shared_ptr<WorkQueue> queue, std::uint64_t number) : queue_(std::move(queue)), number_(number) {}
  void set_number(std::uint64_t number) noexcept { number_ = number; }  // before any other thread has the event
  bool query() override { return queue_->is_done(number_); }
  void wait() override { queue_->wait(number_, false); }

 private:
  std::shared_ptr<WorkQueue> queue_;
  std::uint64_t number_;
};

class HostStream : public StreamState {
 public:
  explicit HostStream(Device device) : StreamState(device), queue_(WorkQueue::start(device)) {}
  ~HostStream() override {
    if (!queue_->is_inherited()) queue_->close();
  }

  Event do_enqueue(std::function<void()> work) override {
    // First: once the work is enqueued, nothing may fail.
    const auto event = std::make_shared<HostEvent>(queue_, 0);
    event->set_number(queue_->put(std::move(work)));
    return Event(event);
  }
  Event do_record() override { return Event(std::make_shared<HostEvent>(queue_, queue_->last())); }
  void do_synchronize() override { queue_->wait(queue_->last(), true); }

  void do_wait(const Event& event) override {
    // Waits on the state and not the Event: a wait inside the stream's work must not advance the observed
    // progress.
    if (event.state() != nullptr) queue_->put([state = event.state()] { state->wait(); });
  }

 private:
  std::shared_ptr<WorkQueue> queue_;
};

}  // namespace

Result<Stream> make_host_stream(Device device) noexcept {
  try {
    return Stream(std::make_shared<HostStream>(device));
  } catch (const std::system_error& error) {
    const int reason = error.code().value();
    return Failure{ErrorCode::device_error, reason, "the system refused another thread",
                   reason == EAGAIN ? Refusal::rlimit : Refusal::other};
  } catch (const std::bad_alloc&) {
    return Failure{ErrorCode::out_of_memory, 0, "no heap for a stream"};
  }
}

}  // namespace berth::internal::device

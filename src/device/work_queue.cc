// SPDX-License-Identifier: Apache-2.0
#include "device/work_queue.h"

#include <thread>

#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::device {

void throw_inherited_stream(Device device) {
  throw DeviceError(ErrorCode::fork_unsafe,
                    {text::join("using a stream of ", device.to_string()),
                     "it was made before fork, and its worker stayed in the parent process", "make streams in the process that uses them"},
                    {{"device", device.to_string()}});
}

std::shared_ptr<WorkQueue> WorkQueue::start(Device device) {
  auto queue = std::make_shared<WorkQueue>(device);
  // Detached: the queue's own work may destroy the last handle, where a join would deadlock.
  std::thread([queue] { queue->work(); }).detach();
  return queue;
}

std::uint64_t WorkQueue::put(std::function<void()> work) {
  check_process();
  std::uint64_t number = 0;
  {
    const os::Lock lock(mutex_);
    items_.push_back(std::move(work));
    number = ++put_;
  }
  changed_.notify_all();
  return number;
}

std::uint64_t WorkQueue::last() {
  check_process();
  const os::Lock lock(mutex_);
  return put_;
}

bool WorkQueue::is_done(std::uint64_t number) {
  check_process();
  const os::Lock lock(mutex_);
  return done_ >= number;
}

void WorkQueue::wait(std::uint64_t number, bool clear) {
  check_process();
  std::exception_ptr error;
  {
    const os::Lock lock(mutex_);
    while (done_ < number) changed_.wait(mutex_);
    if (error_ != nullptr && error_at_ <= number) error = error_;
    if (error != nullptr && clear) error_ = nullptr;
  }
  if (error != nullptr) std::rethrow_exception(error);
}

void WorkQueue::close() {
  {
    const os::Lock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

// The worker's loop: until the queue is closed and everything has run.
void WorkQueue::work() noexcept {
  std::function<void()> item;
  while (take(item)) {
    std::exception_ptr error;
    try {
      item();
    } catch (...) {  // a user's exception is rethrown at a wait
      error = std::current_exception();
    }
    item = nullptr;  // destroy its captures before waiters are notified
    finish(std::move(error));
  }
}

void WorkQueue::check_process() const {
  if (is_inherited()) throw_inherited_stream(device_);
}

bool WorkQueue::take(std::function<void()>& item) {
  const os::Lock lock(mutex_);
  while (items_.empty() && !closed_) changed_.wait(mutex_);
  if (items_.empty()) return false;
  item = std::move(items_.front());
  items_.pop_front();
  return true;
}

void WorkQueue::finish(std::exception_ptr error) {
  {
    const os::Lock lock(mutex_);
    ++done_;
    if (error != nullptr && error_ == nullptr) {
      error_ = std::move(error);
      error_at_ = done_;
    }
  }
  changed_.notify_all();
}

}  // namespace berth::internal::device

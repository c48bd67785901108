// SPDX-License-Identifier: Apache-2.0
#include "device/host_stream.h"

#include <deque>
#include <exception>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "berth/base/error.h"
#include "os/fork.h"
#include "os/mutex.h"

namespace berth {

void throw_inherited_stream(Device device) {
  throw DeviceError(ErrorCode::fork_unsafe,
                    {text::join("using a stream of ", device.to_string()),
                     "it was made before fork, and its worker stayed in the parent process", "make streams in the process that uses them"},
                    {{"device", device.to_string()}});
}

namespace {

// The queue, shared by the stream's handles, its events and its worker. Items are numbered from 1 in the order they were put in.
class Queue {
 public:
  explicit Queue(Device device) : device_(device) {}

  std::uint64_t put(std::function<void()> work) {
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

  std::uint64_t last() {
    check_process();
    const os::Lock lock(mutex_);
    return put_;
  }

  bool is_done(std::uint64_t number) {
    check_process();
    const os::Lock lock(mutex_);
    return done_ >= number;
  }

  // Throws the stream's first exception when an item up to `number` threw it; `clear` forgets it.
  void wait(std::uint64_t number, bool clear) {
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

  // The worker's life: until the stream is closed and everything has run.
  void work() noexcept {
    std::function<void()> item;
    while (take(item)) {
      std::exception_ptr error;
      try {
        item();
      } catch (...) {  // whatever the user's function throws is theirs to catch, at a wait
        error = std::current_exception();
      }
      item = nullptr;  // what it keeps alive is let go before anyone is told that it is done
      finish(std::move(error));
    }
  }

  void close() {
    {
      const os::Lock lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

  bool is_inherited() const noexcept { return generation_ != os::fork_generation(); }

 private:
  void check_process() const {
    if (is_inherited()) throw_inherited_stream(device_);
  }

  bool take(std::function<void()>& item) {
    const os::Lock lock(mutex_);
    while (items_.empty() && !closed_) changed_.wait(mutex_);
    if (items_.empty()) return false;
    item = std::move(items_.front());
    items_.pop_front();
    return true;
  }

  void finish(std::exception_ptr error) {
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

  const Device device_;
  const std::uint64_t generation_ = os::fork_generation();
  os::Mutex mutex_;
  os::Condition changed_;
  std::deque<std::function<void()>> items_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t put_ BERTH_GUARDED_BY(mutex_) = 0;   // items ever put in
  std::uint64_t done_ BERTH_GUARDED_BY(mutex_) = 0;  // done_ + items_.size() + (one running) == put_
  std::exception_ptr error_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t error_at_ BERTH_GUARDED_BY(mutex_) = 0;
  bool closed_ BERTH_GUARDED_BY(mutex_) = false;
};

class HostEvent : public EventState {
 public:
  HostEvent(std::shared_ptr<Queue> queue, std::uint64_t number) : queue_(std::move(queue)), number_(number) {}
  void set_number(std::uint64_t number) noexcept { number_ = number; }  // before anyone else has the event
  bool query() override { return queue_->is_done(number_); }
  void wait() override { queue_->wait(number_, false); }

 private:
  std::shared_ptr<Queue> queue_;
  std::uint64_t number_;
};

class HostStream : public StreamState {
 public:
  explicit HostStream(Device device) : StreamState(device), queue_(std::make_shared<Queue>(device)) {
    // Detached: the last handle may be dropped by the stream's own work, where joining would wait for itself.
    std::thread([queue = queue_] { queue->work(); }).detach();
  }
  ~HostStream() override {
    if (!queue_->is_inherited()) queue_->close();
  }

  Event do_enqueue(std::function<void()> work) override {
    const auto event = std::make_shared<HostEvent>(queue_, 0);  // first: once the work is in, nothing may fail
    event->set_number(queue_->put(std::move(work)));
    return Event(event);
  }
  Event do_record() override { return Event(std::make_shared<HostEvent>(queue_, queue_->last())); }
  void do_synchronize() override { queue_->wait(queue_->last(), true); }

  void do_wait(const Event& event) override {
    // The state's own wait: what this stream has seen is no news to a thread that waited for nothing.
    if (event.state() != nullptr) queue_->put([state = event.state()] { state->wait(); });
  }

 private:
  std::shared_ptr<Queue> queue_;
};

}  // namespace

Result<Stream> make_host_stream(Device device) noexcept {
  try {
    return Stream(std::make_shared<HostStream>(device));
  } catch (const std::system_error& error) {
    return Failure{ErrorCode::out_of_memory, error.code().value(), "the system refused another thread"};
  } catch (const std::bad_alloc&) {
    return Failure{ErrorCode::out_of_memory, 0, "no heap for a stream"};
  }
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "berth/device/stream.h"

#include <atomic>
#include <new>
#include <utility>

#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "device/stream_clock.h"
#include "device/stream_work.h"
#include "os/lock/mutex.h"

namespace berth {

using namespace internal;
using namespace internal::device;

namespace {

std::atomic<std::uint64_t> g_next_stream_id{1};

// Relaxed, here and in next_point, is enough. Let work be enqueued, then next_point return n; and let another
// thread take a number of at least n, then record an event. If the event were before the work in the stream's
// queue, then, as queues are ordered by locks, taking that number would have happened before the call of
// next_point, which would have returned more.
std::atomic<std::uint64_t> g_last_point{0};

}  // namespace

constinit thread_local const RunningWork* internal::device::t_running_work = nullptr;

std::uint64_t next_point() noexcept { return g_last_point.load(std::memory_order_relaxed) + 1; }
bool is_in_stream_work() noexcept { return t_running_work != nullptr; }

EventState::~EventState() = default;

bool Event::query() const {
  if (state_ != nullptr && !state_->query()) return false;
  note_done();
  return true;
}

void Event::wait() const {
  if (state_ != nullptr) state_->wait();
  note_done();
}

std::uint64_t Event::stream_id() const noexcept { return progress_ == nullptr ? 0 : progress_->stream_id(); }

void Event::note_done() const noexcept {
  if (progress_ == nullptr) return;
  progress_->raise(point_);
  if (clock_ == nullptr) return;
  for (const StreamClock::Entry& entry : clock_->entries()) entry.progress->raise(entry.point);
}

struct StreamState::Order {
  explicit Order(std::uint64_t id) : progress(std::make_shared<StreamProgress>(id)) {}

  const std::shared_ptr<StreamProgress> progress;
  os::Mutex mutex;
  std::shared_ptr<const StreamClock> clock BERTH_GUARDED_BY(mutex);  // null: nothing known precedes it
  std::atomic<std::uint64_t> version{0};
};

StreamState::StreamState(Device device)
    : device_(device), id_(g_next_stream_id.fetch_add(1, std::memory_order_relaxed)), order_(std::make_unique<Order>(id_)) {}
StreamState::~StreamState() = default;

std::shared_ptr<const StreamClock> StreamState::clock() const noexcept {
  const os::Lock lock(order_->mutex);
  return order_->clock;
}

// Only a hint: the version that it is compared with was loaded before the clock.
std::uint64_t StreamState::clock_version() const noexcept { return order_->version.load(std::memory_order_relaxed); }
std::uint64_t StreamState::done_point() const noexcept { return order_->progress->done(); }

std::shared_ptr<const StreamProgress> StreamState::progress() const noexcept { return order_->progress; }

bool StreamState::comes_after(std::uint64_t stream_id, std::uint64_t point) const noexcept {
  if (stream_id == id_) return true;
  const std::shared_ptr<const StreamClock> known = clock();
  return known != nullptr && known->point_of(stream_id) >= point;
}

// The ordering part of an event that the backend is about to record. The number is taken, and the clock read,
// before the backend records the event: so everything enqueued before the number was taken, and every wait in
// the clock, happens before the event.
Event StreamState::numbered() const noexcept {
  Event event;
  event.progress_ = order_->progress;
  event.point_ = g_last_point.fetch_add(1, std::memory_order_relaxed) + 1;
  event.clock_ = clock();
  return event;
}

Event StreamState::completed(Event event, Event made) noexcept {
  event.state_ = std::move(made.state_);
  return event;
}

Event StreamState::record() {
  Event event = numbered();
  return completed(std::move(event), do_record());
}

Event StreamState::enqueue(std::function<void()> work) {
  Event event = numbered();
  return completed(event, do_enqueue([work = std::move(work), id = id_, point = event.point()]() mutable {
                     const RunningWork here(id, point);
                     // its captures are destroyed as part of the work
                     const std::function<void()> running = std::exchange(work, nullptr);
                     running();
                   }));
}

void StreamState::wait(const Event& event) {
  do_wait(event);
  learn(event);
}

void StreamState::synchronize() {
  const Event all = numbered();
  do_synchronize();
  all.note_done();
}

// Called after the backend has enqueued the wait: a thread that reads the clock enqueues its work after it.
void StreamState::learn(const Event& event) noexcept {
  if (event.progress_ == nullptr) return;
  std::shared_ptr<const StreamClock> old = clock();
  try {
    for (;;) {
      std::shared_ptr<const StreamClock> made = StreamClock::merged(old.get(), {event.progress_, event.point_}, event.clock_.get(), id_);
      if (made == nullptr) return;
      const os::Lock lock(order_->mutex);
      if (order_->clock == old) {
        order_->clock.swap(made);
        order_->version.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      old = order_->clock;  // another thread's wait came in between
    }
  } catch (const std::bad_alloc&) {  // the wait stands; a less precise clock only costs memory
  }
}

Event Stream::enqueue(std::function<void()> work) const {
  if (state_ != nullptr) return state_->enqueue(std::move(work));
  work();
  return {};
}

Event Stream::record() const { return state_ == nullptr ? Event() : state_->record(); }
void Stream::wait(const Event& event) const { state_ == nullptr ? event.wait() : state_->wait(event); }

void Stream::synchronize() const {
  if (state_ != nullptr) state_->synchronize();
}

Stream make_stream(Device device) {
  Result<Stream> made = backend(device).make_stream();
  if (!made) throw_failure(made.failure(), device, "making a stream");
  return *made;
}

}  // namespace berth

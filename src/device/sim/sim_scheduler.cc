// SPDX-License-Identifier: Apache-2.0
#include "device/sim/sim_scheduler.h"

#include <chrono>
#include <thread>
#include <utility>

#include "device/work_queue.h"

namespace berth::internal::device {

namespace {

// A point in a queue of some simulated device.
class SimEvent : public EventState {
 public:
  SimEvent(std::shared_ptr<SimScheduler> scheduler, std::shared_ptr<SimScheduler::Queue> queue, std::uint64_t number)
      : scheduler_(std::move(scheduler)), queue_(std::move(queue)), number_(number) {}
  void set_number(std::uint64_t number) noexcept { number_ = number; }  // before any other thread has the event

  bool query() override { return scheduler_->query(*queue_, number_); }
  bool peek() const { return scheduler_->peek(*queue_, number_); }  // without running anything
  void wait() override { scheduler_->wait(*queue_, number_, false); }

  const SimScheduler* scheduler() const noexcept { return scheduler_.get(); }
  SimScheduler::Queue& queue() const noexcept { return *queue_; }
  std::uint64_t number() const noexcept { return number_; }

 private:
  std::shared_ptr<SimScheduler> scheduler_;
  std::shared_ptr<SimScheduler::Queue> queue_;
  std::uint64_t number_;
};

}  // namespace

struct SimScheduler::Item {
  enum class Kind { device_work, host_work, wait };
  Kind kind;
  std::function<void()> work;
  Event event = {};                     // kind wait
  const SimEvent* own_event = nullptr;  // the event, if it belongs to this scheduler
  bool foreign_done = false;            // of an event of another device: the last query
};

struct SimScheduler::Queue {
  std::deque<Item> items;  // the head stays until it has run
  bool head_runs = false;
  std::uint64_t put = 0;
  std::uint64_t done = 0;  // done + items.size() == put
  std::exception_ptr error;
  std::uint64_t error_at = 0;
  bool dropped = false;            // the stream is destroyed; the queue is removed once empty
  std::uint64_t needed_up_to = 0;  // during a step: the waiter depends on items up to this one
};

SimScheduler::SimScheduler(Device device, std::uint64_t seed, bool background) noexcept
    : device_(device), background_(background), random_(seed) {}
SimScheduler::~SimScheduler() = default;

std::shared_ptr<SimScheduler::Queue> SimScheduler::make_queue() {
  auto queue = std::make_shared<Queue>();
  const os::Lock lock(mutex_);
  queues_.push_back(queue);
  return queue;
}

void SimScheduler::drop_queue(const std::shared_ptr<Queue>& queue) noexcept {
  if (origin_.is_inherited()) return;
  const os::Lock lock(mutex_);
  queue->dropped = true;
  if (queue->items.empty()) std::erase(queues_, queue);
}

void SimScheduler::check_process() const {
  if (origin_.is_inherited()) throw_inherited_stream(device_);
}

std::uint64_t SimScheduler::put_device_work(Queue& queue, std::function<void()> work) {
  return put(queue, {Item::Kind::device_work, std::move(work)});
}

std::uint64_t SimScheduler::put_host_work(Queue& queue, std::function<void()> work) {
  return put(queue, {Item::Kind::host_work, std::move(work)});
}

std::uint64_t SimScheduler::put_wait(Queue& queue, const Event& event) {
  Item item{Item::Kind::wait, [] {}, event};
  const auto* const sim = dynamic_cast<const SimEvent*>(event.state().get());
  if (sim != nullptr && sim->scheduler() == this) item.own_event = sim;
  return put(queue, std::move(item));
}

std::uint64_t SimScheduler::put(Queue& queue, Item item) {
  check_process();
  std::uint64_t number = 0;
  bool start = false;
  {
    const os::Lock lock(mutex_);
    queue.items.push_back(std::move(item));
    ++pending_;
    ++changes_;
    number = ++queue.put;
    start = background_ && !background_runs_;
    background_runs_ = background_runs_ || start;
  }
  if (start) start_background();
  changed_.notify_all();
  return number;
}

std::uint64_t SimScheduler::last(Queue& queue) {
  check_process();
  const os::Lock lock(mutex_);
  return queue.put;
}

std::size_t SimScheduler::pending() const {
  const os::Lock lock(mutex_);
  return pending_;
}

bool SimScheduler::peek(const Queue& queue, std::uint64_t number) const {
  const os::Lock lock(mutex_);
  return is_done(queue, number);
}

bool SimScheduler::query(Queue& queue, std::uint64_t number) {
  check_process();
  bool run = false;
  {
    const os::Lock lock(mutex_);
    if (is_done(queue, number)) return true;
    run = random_.one_in(2);  // so that polling makes progress, but slowly
  }
  if (run) step(HostWork::none, nullptr, 0);  // a host function may block; a query must not
  return peek(queue, number);
}

void SimScheduler::wait(Queue& queue, std::uint64_t number, bool clear) {
  check_process();
  while (!peek(queue, number)) {
    const Step taken = step(HostWork::needed, &queue, number);
    if (taken.ran) continue;
    if (const Event foreign = blocking_event(queue); foreign.state() != nullptr) {
      try {
        foreign.state()->wait();
      } catch (...) {  // run_head sees it again, and keeps it for the waiting stream
      }
      continue;
    }
    // Another thread runs what this one waits for. Any change since no item was allowed is a reason to try
    // again.
    const os::Lock lock(mutex_);
    while (changes_ == taken.changes && !is_done(queue, number)) changed_.wait(mutex_);
  }
  std::exception_ptr error;
  {
    const os::Lock lock(mutex_);
    if (queue.error != nullptr && queue.error_at <= number) error = queue.error;
    if (error != nullptr && clear) queue.error = nullptr;
  }
  if (error != nullptr) std::rethrow_exception(error);
}

bool SimScheduler::is_done(const Queue& queue, std::uint64_t number) const { return queue.done >= number; }

// Marks the items up to `number`, and transitively what they wait for, as needed.
void SimScheduler::mark_needed(Queue& queue, std::uint64_t number) {
  if (queue.needed_up_to >= number) return;
  queue.needed_up_to = number;
  std::uint64_t at = queue.done;
  for (const Item& item : queue.items) {
    if (++at > number) return;
    if (item.own_event != nullptr) mark_needed(item.own_event->queue(), item.own_event->number());
  }
}

void SimScheduler::mark_all(std::uint64_t up_to) {
  for (const std::shared_ptr<Queue>& queue : queues_) queue->needed_up_to = up_to;
}

bool SimScheduler::is_allowed(const Queue& queue) const {
  if (queue.items.empty() || queue.head_runs) return false;
  const Item& head = queue.items.front();
  switch (head.kind) {
    case Item::Kind::device_work: return true;
    case Item::Kind::host_work: return queue.done < queue.needed_up_to;
    case Item::Kind::wait:
      return head.own_event != nullptr ? is_done(head.own_event->queue(), head.own_event->number()) : head.foreign_done;
  }
  return false;
}

// Allocates nothing: waiting for enqueued work must not fail for lack of memory.
SimScheduler::Step SimScheduler::step(HostWork host_work, Queue* target, std::uint64_t number) {
  refresh_foreign_events();
  std::shared_ptr<Queue> chosen;
  std::uint64_t changes = 0;
  {
    const os::Lock lock(mutex_);
    changes = changes_;
    mark_all(host_work == HostWork::any ? UINT64_MAX : 0);
    if (target != nullptr) mark_needed(*target, number);
    std::size_t allowed = 0;
    for (const std::shared_ptr<Queue>& queue : queues_) allowed += is_allowed(*queue) ? 1 : 0;
    if (allowed == 0) return {false, changes};
    std::size_t skip = random_.below(allowed);
    for (const std::shared_ptr<Queue>& queue : queues_) {
      if (is_allowed(*queue) && skip-- == 0) chosen = queue;
    }
    chosen->head_runs = true;
  }
  run_head(chosen);
  return {true, changes};
}

void SimScheduler::run_head(const std::shared_ptr<Queue>& queue) {
  // The head cannot change while head_runs is set, so it is run without the lock.
  Item* head = nullptr;
  {
    const os::Lock lock(mutex_);
    head = &queue->items.front();
  }
  std::exception_ptr error;
  try {
    head->work();
    if (head->kind == Item::Kind::wait) head->event.state()->wait();  // done already; may throw
  } catch (...) {                                                     // rethrown at a wait
    error = std::current_exception();
  }
  Item finished{Item::Kind::device_work, nullptr};
  {
    const os::Lock lock(mutex_);
    finished = std::move(queue->items.front());
    queue->items.front().own_event = nullptr;  // the event is destroyed with `finished`
  }
  // Destroys the work's captures before waiters are notified.
  finished = Item{Item::Kind::device_work, nullptr};
  {
    const os::Lock lock(mutex_);
    queue->items.pop_front();
    queue->head_runs = false;
    ++queue->done;
    --pending_;
    ++changes_;
    if (error != nullptr && queue->error == nullptr) {
      queue->error = std::move(error);
      queue->error_at = queue->done;
    }
    if (queue->dropped && queue->items.empty()) std::erase(queues_, queue);
  }
  changed_.notify_all();
}

// Whether the head of the queue waits for an event of another device that was not done at its last query.
bool SimScheduler::waits_for_foreign(const Queue& queue) const {
  if (queue.items.empty() || queue.head_runs) return false;
  const Item& head = queue.items.front();
  return head.kind == Item::Kind::wait && head.own_event == nullptr && !head.foreign_done;
}

void SimScheduler::refresh_foreign_events() {
  for (std::size_t i = 0;; ++i) {
    std::shared_ptr<Queue> queue;
    Event event;
    {
      const os::Lock lock(mutex_);
      while (i < queues_.size() && !waits_for_foreign(*queues_[i])) ++i;
      if (i >= queues_.size()) return;
      queue = queues_[i];
      event = queue->items.front().event;
    }
    if (!is_foreign_done(event)) continue;  // without the lock: another device has its own locks
    const os::Lock lock(mutex_);
    if (waits_for_foreign(*queue) && queue->items.front().event.state() == event.state()) queue->items.front().foreign_done = true;
  }
}

// Two simulated devices may wait for each other's streams, and querying each other they would run each other's
// work in an endless recursion. So a nested query only peeks at another simulated device.
bool SimScheduler::is_foreign_done(const Event& event) noexcept {
  static constinit thread_local bool asking = false;
  const auto* const sim = dynamic_cast<const SimEvent*>(event.state().get());
  if (asking && sim != nullptr) return sim->peek();
  const bool outermost = !std::exchange(asking, true);
  // An event whose query throws counts as done: the wait for it throws the error into the right stream.
  bool done = true;
  try {
    done = event.state()->query();
  } catch (...) {
  }
  if (outermost) asking = false;
  return done;
}

// The event of another device that blocks the head of a queue, directly or through the queues it waits for;
// none when that head is running or could run.
Event SimScheduler::blocking_event(Queue& target) {
  const os::Lock lock(mutex_);
  for (const Queue* queue = &target; !queue->items.empty() && !queue->head_runs;) {
    const Item& head = queue->items.front();
    if (head.kind != Item::Kind::wait) return {};
    if (head.own_event == nullptr) return head.foreign_done ? Event() : head.event;
    if (is_done(head.own_event->queue(), head.own_event->number())) return {};
    queue = &head.own_event->queue();
  }
  return {};
}

void SimScheduler::start_background() noexcept {
  try {
    std::thread([self = shared_from_this()] { self->background_loop(); }).detach();
  } catch (const std::exception&) {  // system_error or bad_alloc
    const os::Lock lock(mutex_);     // no thread: the waiting threads do the work
    background_runs_ = false;
  }
}

void SimScheduler::background_loop() noexcept {
  while (true) {
    {
      const os::Lock lock(mutex_);
      if (pending_ == 0) {
        background_runs_ = false;
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // let waiting threads go first
    step(HostWork::any, nullptr, 0);
  }
}

SimStream::SimStream(Device device, std::shared_ptr<SimScheduler> scheduler)
    : StreamState(device), scheduler_(std::move(scheduler)), queue_(scheduler_->make_queue()) {}
SimStream::~SimStream() { scheduler_->drop_queue(queue_); }

Event SimStream::do_enqueue(std::function<void()> work) {
  // First: once the work is enqueued, nothing may fail.
  const auto event = std::make_shared<SimEvent>(scheduler_, queue_, 0);
  event->set_number(scheduler_->put_host_work(*queue_, std::move(work)));
  return Event(event);
}

void SimStream::enqueue_device_work(std::function<void()> work) { scheduler_->put_device_work(*queue_, std::move(work)); }
Event SimStream::do_record() { return Event(std::make_shared<SimEvent>(scheduler_, queue_, scheduler_->last(*queue_))); }
void SimStream::do_synchronize() { scheduler_->wait(*queue_, scheduler_->last(*queue_), true); }

void SimStream::do_wait(const Event& event) {
  if (event.state() != nullptr) scheduler_->put_wait(*queue_, event);
}

}  // namespace berth::internal::device

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "base/random.h"
#include "berth/device/stream.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// The streams of a simulated device. Nothing runs by itself: a thread that waits for or queries an event picks
// work and runs it, in a pseudo-random order, drawn from the seed, among all legal ones. So work finishes late,
// and in orders that a real device would show once a month. Any thread.
//
// Legal items are the heads of the queues, except waits for events that are not done. Host functions may block,
// so a thread runs one only when what it waits for depends on it; the background thread runs any.
namespace berth::internal::device {

class SimScheduler : public std::enable_shared_from_this<SimScheduler> {
 public:
  struct Queue;  // one per stream; defined in the .cc

  SimScheduler(Device device, std::uint64_t seed, bool background) noexcept;
  ~SimScheduler();

  std::shared_ptr<Queue> make_queue();
  void drop_queue(const std::shared_ptr<Queue>& queue) noexcept;  // its queued work still runs

  // Each returns the item's number in its queue, from 1. `device_work` never blocks; `host_work` may.
  std::uint64_t put_device_work(Queue& queue, std::function<void()> work);
  std::uint64_t put_host_work(Queue& queue, std::function<void()> work);
  std::uint64_t put_wait(Queue& queue, const Event& event);
  std::uint64_t last(Queue& queue);

  // Runs at most one item, and returns whether the item `number` is done.
  bool query(Queue& queue, std::uint64_t number);
  bool peek(const Queue& queue, std::uint64_t number) const;  // the same without running anything
  // Runs work until the item is done. Throws the queue's first exception up to the item; `clear` then clears
  // it.
  void wait(Queue& queue, std::uint64_t number, bool clear);

  std::size_t pending() const;

 private:
  struct Item;
  // Which host functions may run: none, those that an item depends on, or all.
  enum class HostWork { none, needed, any };
  struct Step {
    bool ran;               // false: no item was allowed
    std::uint64_t changes;  // changes_ when that was decided
  };

  std::uint64_t put(Queue& queue, Item item);
  void check_process() const;
  // Picks one allowed item and runs it. The caller waits for item `number` of `target`.
  Step step(HostWork host_work, Queue* target, std::uint64_t number);
  void mark_needed(Queue& queue, std::uint64_t number) BERTH_REQUIRES(mutex_);
  void mark_all(std::uint64_t up_to) BERTH_REQUIRES(mutex_);
  bool is_done(const Queue& queue, std::uint64_t number) const BERTH_REQUIRES(mutex_);
  bool is_allowed(const Queue& queue) const BERTH_REQUIRES(mutex_);
  bool waits_for_foreign(const Queue& queue) const BERTH_REQUIRES(mutex_);
  Event blocking_event(Queue& target);
  static bool is_foreign_done(const Event& event) noexcept;
  void run_head(const std::shared_ptr<Queue>& queue);
  void refresh_foreign_events();
  void start_background() noexcept;
  void background_loop() noexcept;

  const Device device_;
  const bool background_;
  const os::Origin origin_;
  mutable os::Mutex mutex_;
  os::Condition changed_;
  Random random_ BERTH_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Queue>> queues_ BERTH_GUARDED_BY(mutex_);
  std::size_t pending_ BERTH_GUARDED_BY(mutex_) = 0;    // == sum of the queues' sizes
  std::uint64_t changes_ BERTH_GUARDED_BY(mutex_) = 0;  // incremented with every item enqueued or done
  bool background_runs_ BERTH_GUARDED_BY(mutex_) = false;
};

// A stream over one queue. The device's own work (copies, fills) is enqueued with `enqueue_device_work`.
class SimStream : public StreamState {
 public:
  SimStream(Device device, std::shared_ptr<SimScheduler> scheduler);
  ~SimStream() override;

  void enqueue_device_work(std::function<void()> work);

 protected:
  Event do_enqueue(std::function<void()> work) override;
  Event do_record() override;
  void do_wait(const Event& event) override;
  void do_synchronize() override;

 private:
  std::shared_ptr<SimScheduler> scheduler_;
  std::shared_ptr<SimScheduler::Queue> queue_;
};

}  // namespace berth::internal::device

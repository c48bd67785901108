// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "berth/device/device.h"
#include "berth/export.h"

// Streams and events. A stream is a queue of work on a device: its items run one after another, in the order
// they were enqueued; items of different streams run concurrently, in any order. An event marks a point in a
// stream: it is done when all work enqueued before it is done.
//
//     Stream a = make_stream("cpu"), b = make_stream("cpu");
//     a.enqueue([] { fill(); });
//     b.wait(a.record());                // what b runs from now on comes after what a has been given so far
//     b.enqueue([] { use(); });
//     b.synchronize();
//
// "No stream", a default-constructed Stream, means synchronously on the calling thread, without ordering.
//
// Events are numbered, across all streams of the process, in the order they are recorded; the number is the
// event's point. A stream keeps a vector clock: for each other stream the latest point that is known, from the
// waits that were issued, to happen before its later work. So berth can tell whether one stream may touch what
// another has worked on without querying the device. (Decision 0011.)
//
// Work that throws does not stop its stream: the first exception is kept, and every `Event::wait` that covers
// it throws it, until a `Stream::synchronize` throws and clears it.
//
// Handles are cheap to copy and safe to use from any thread. A stream whose last handle is destroyed finishes
// its queued work, unless the process ends first. The host functions of one device may run one at a time, so a
// host function must not wait for another. A forked child must make its own streams: inherited ones throw
// DeviceError(fork_unsafe).
namespace berth {

class Stream;
namespace internal::device {
class StreamClock;  // src/device/stream_clock.h
class StreamProgress;
}  // namespace internal::device

// An event's implementation, by the backend that made it.
class BERTH_EXPORT EventState {
 public:
  virtual ~EventState();
  virtual bool query() = 0;  // whether the event is done; never blocks
  virtual void wait() = 0;   // blocks the calling thread; throws what earlier work of the stream threw
};

class BERTH_EXPORT Event {
 public:
  Event() noexcept = default;  // done already
  explicit Event(std::shared_ptr<EventState> state) noexcept : state_(std::move(state)) {}

  bool query() const;
  void wait() const;
  const std::shared_ptr<EventState>& state() const noexcept { return state_; }

  // The stream that the event marks a point of, and that point; both 0 for an event that no stream recorded.
  std::uint64_t stream_id() const noexcept;
  std::uint64_t point() const noexcept { return point_; }

 private:
  friend class StreamState;
  void note_done() const noexcept;

  std::shared_ptr<EventState> state_;
  std::shared_ptr<internal::device::StreamProgress> progress_;  // of its stream
  std::shared_ptr<const internal::device::StreamClock> clock_;  // what is known to precede it; empty: nothing
  std::uint64_t point_ = 0;
};

// The point that the next event will get. Work that is already in a stream happens before every event of that
// stream whose point is at least this.
BERTH_EXPORT std::uint64_t next_point() noexcept;

// Whether the calling thread is running a stream's host function. It must not wait for any stream then, which
// could deadlock.
BERTH_EXPORT bool is_in_stream_work() noexcept;

// A stream's implementation. Always owned by shared_ptr. A backend implements the `do_` functions; points and
// clocks are kept here, for all backends. The constructor throws bad_alloc when the heap is exhausted.
class BERTH_EXPORT StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  explicit StreamState(Device device);
  virtual ~StreamState();
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  // Enqueues a host function and returns the event after it. The function may block, and may enqueue work into
  // this and other streams; it must not wait for its own stream. When this throws, the work was not enqueued.
  Event enqueue(std::function<void()> work);
  Event record();
  // Later work of this stream runs after the event, which may be of another device.
  void wait(const Event& event);
  void synchronize();

  Device device() const noexcept { return device_; }
  std::uint64_t id() const noexcept { return id_; }  // never reused in this process

  // Whether the stream is capturing: work is then recorded into a graph that may run later and more than once,
  // instead of being executed, and its events say nothing about when memory is free. Queries the device, which
  // takes some tens of nanoseconds.
  virtual bool is_capturing() const noexcept { return false; }

  // Whether a point of a stream (this one included) happens before everything that is enqueued into this stream
  // from now on, by the waits that were issued. Does not query the device. May return false for an old wait: a
  // clock keeps only the streams that were waited for most recently.
  bool comes_after(std::uint64_t stream_id, std::uint64_t point) const noexcept;
  // The latest point that a wait or a query has observed to be done. Does not query the device.
  std::uint64_t done_point() const noexcept;

  // For allocators, which ask about many streams at once: the clock behind comes_after, and a version that
  // grows whenever the clock does.
  std::shared_ptr<const internal::device::StreamClock> clock() const noexcept;
  std::uint64_t clock_version() const noexcept;
  // behind done_point; may outlive the stream
  std::shared_ptr<const internal::device::StreamProgress> progress() const noexcept;

 protected:
  // As the public functions. An event covers everything that was enqueued before the call.
  virtual Event do_enqueue(std::function<void()> work) = 0;
  virtual Event do_record() = 0;
  virtual void do_wait(const Event& event) = 0;
  virtual void do_synchronize() = 0;

 private:
  struct Order;
  Event numbered() const noexcept;
  static Event completed(Event event, Event made) noexcept;
  void learn(const Event& event) noexcept;

  Device device_;
  std::uint64_t id_;
  std::unique_ptr<Order> order_;
};

// A non-owning reference to a stream, as `Request` and the copy options carry it. Valid while the Stream it
// came from lives.
class StreamRef {
 public:
  constexpr StreamRef() noexcept = default;  // no stream
  StreamRef(const Stream& stream) noexcept;
  explicit constexpr StreamRef(StreamState* state) noexcept : state_(state) {}

  explicit operator bool() const noexcept { return state_ != nullptr; }
  StreamState* operator->() const noexcept { return state_; }  // REQUIRES: there is a stream
  std::uint64_t id() const noexcept { return state_ == nullptr ? 0 : state_->id(); }
  StreamState* state() const noexcept { return state_; }

 private:
  StreamState* state_ = nullptr;
};

class BERTH_EXPORT Stream {
 public:
  Stream() noexcept = default;  // no stream
  explicit Stream(std::shared_ptr<StreamState> state) noexcept : state_(std::move(state)) {}

  explicit operator bool() const noexcept { return state_ != nullptr; }
  std::uint64_t id() const noexcept { return state_ == nullptr ? 0 : state_->id(); }
  Device device() const noexcept { return state_ == nullptr ? Device() : state_->device(); }

  // On "no stream" the work runs before enqueue returns, and events are done already.
  Event enqueue(std::function<void()> work) const;
  Event record() const;
  void wait(const Event& event) const;
  void synchronize() const;

  const std::shared_ptr<StreamState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<StreamState> state_;
};

inline StreamRef::StreamRef(const Stream& stream) noexcept : state_(stream.state().get()) {}

// Makes a stream of the device. Throws DeviceError when the device does not exist or has no streams.
BERTH_EXPORT Stream make_stream(Device device);

}  // namespace berth

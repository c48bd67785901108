// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "berth/device/device.h"
#include "berth/export.h"

// Streams and events. A stream is a queue of work on a device: its items run one after another, in the order they were put in;
// items of different streams run in any order and at the same time. An event is a point in a stream: it is done when all work put
// in before it is.
//
//     Stream a = make_stream("cpu"), b = make_stream("cpu");
//     a.enqueue([] { fill(); });
//     b.wait(a.record());                // what b runs from now on comes after what a has been given so far
//     b.enqueue([] { use(); });
//     b.synchronize();
//
// "No stream", a default-made Stream, means at once, on the calling thread, ordered with nothing.
//
// Events are numbered, over all streams of the process, in the order they are asked for: their points. A stream keeps a clock: for each
// other stream the latest point that its further work is known to come after, because of the waits it was given. So it can be told
// whether one stream may touch what another has worked on, without asking either how far it is. (Decision 0011.)
//
// Work that throws does not stop its stream: the first exception is kept, and thrown by every `Event::wait` that covers it until
// a `Stream::synchronize` has thrown it and so cleared it.
//
// Handles are cheap to copy and safe to use from any thread. A stream that is dropped finishes what it was given, unless the process
// ends first. Host functions of one device may be run one at a time, so one must not wait for another's. A forked child must make
// streams of its own: inherited ones throw DeviceError(fork_unsafe).
namespace berth {

class Stream;
namespace internal::device {
class StreamClock;  // src/device/stream_clock.h
class StreamProgress;
}  // namespace internal::device

// What an event is, to the backend that made it.
class BERTH_EXPORT EventState {
 public:
  virtual ~EventState();
  virtual bool query() = 0;  // whether it is done; never blocks
  virtual void wait() = 0;   // blocks the calling thread; throws what the work before it threw
};

class BERTH_EXPORT Event {
 public:
  Event() noexcept = default;  // done already
  explicit Event(std::shared_ptr<EventState> state) noexcept : state_(std::move(state)) {}

  bool query() const;
  void wait() const;
  const std::shared_ptr<EventState>& state() const noexcept { return state_; }

  // The stream it is a point of, and its number; both 0 for one that no stream has given.
  std::uint64_t stream_id() const noexcept;
  std::uint64_t point() const noexcept { return point_; }

 private:
  friend class StreamState;
  void note_done() const noexcept;

  std::shared_ptr<EventState> state_;
  std::shared_ptr<internal::device::StreamProgress> progress_;  // of its stream
  std::shared_ptr<const internal::device::StreamClock> clock_;  // what it comes after, as far as that is known; empty: nothing
  std::uint64_t point_ = 0;
};

// The number that the next event will get. What has been put into a stream so far comes before every event of that stream whose point is
// at least this.
BERTH_EXPORT std::uint64_t next_point() noexcept;

// Whether the calling thread is running a host function of some stream. It must not wait for any stream then: that may wait for this one.
BERTH_EXPORT bool is_in_stream_work() noexcept;

// What a stream is, to the backend that made it. Always handled by shared_ptr. A backend implements the `do_` functions; numbers and clocks
// are kept here, for all backends alike. Throws bad_alloc when it is made without a heap.
class BERTH_EXPORT StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  explicit StreamState(Device device);
  virtual ~StreamState();
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  // A host function, run in its turn, and the event behind it. It may block, and may put work into this and other streams; it must not
  // wait for its own. When this throws, the work was not put in.
  Event enqueue(std::function<void()> work);
  Event record();
  // Later work of this stream comes after the event. The event may be of another device.
  void wait(const Event& event);
  void synchronize();

  Device device() const noexcept { return device_; }
  std::uint64_t id() const noexcept { return id_; }  // never used again in this process

  // Whether what is put in now is recorded into a graph, to be run later and more than once, and is not done by itself. Then no event of it
  // says anything about memory. Asks the device, which takes some tens of nanoseconds.
  virtual bool is_capturing() const noexcept { return false; }

  // Whether everything that is put into this stream from now on comes after a point of a stream (its own included), by waits that were
  // issued. Asks no device. False may also mean that it was forgotten: a clock keeps the streams that were waited for last.
  bool comes_after(std::uint64_t stream_id, std::uint64_t point) const noexcept;
  // The latest point that someone has seen to be done, by a wait or a query. Asks no device.
  std::uint64_t done_point() const noexcept;

  // For allocators, which ask about many streams at once: what comes_after knows, and a count that grows whenever there is more of it.
  std::shared_ptr<const internal::device::StreamClock> clock() const noexcept;
  std::uint64_t clock_version() const noexcept;
  std::shared_ptr<const internal::device::StreamProgress> progress() const noexcept;  // what done_point knows, for longer than the stream

 protected:
  // As the public functions. An event covers everything that was put in before the call.
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

// A stream that someone else keeps: what `Request` and the copy options carry. Valid while the Stream it came from lives.
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

  // On "no stream" the work runs before enqueue returns, and events are done.
  Event enqueue(std::function<void()> work) const;
  Event record() const;
  void wait(const Event& event) const;
  void synchronize() const;

  const std::shared_ptr<StreamState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<StreamState> state_;
};

inline StreamRef::StreamRef(const Stream& stream) noexcept : state_(stream.state().get()) {}

// A new stream of the device. Throws DeviceError when the device is not there or has no streams.
BERTH_EXPORT Stream make_stream(Device device);

}  // namespace berth

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
// Work that throws does not stop its stream: the first exception is kept, and thrown by every `Event::wait` that covers it until
// a `Stream::synchronize` has thrown it and so cleared it.
//
// Handles are cheap to copy and safe to use from any thread. A stream that is dropped finishes what it was given, unless the process
// ends first. Host functions of one device may be run one at a time, so one must not wait for another's. A forked child must make
// streams of its own: inherited ones throw DeviceError(fork_unsafe).
namespace berth {

class Stream;

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

  bool query() const { return state_ == nullptr || state_->query(); }
  void wait() const {
    if (state_ != nullptr) state_->wait();
  }
  const std::shared_ptr<EventState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<EventState> state_;
};

// What a stream is, to the backend that made it. Always handled by shared_ptr.
class BERTH_EXPORT StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  explicit StreamState(Device device) noexcept;
  virtual ~StreamState();

  // A host function, run in its turn, and the event behind it. It may block, and may put work into this and other streams; it must not
  // wait for its own. When this throws, the work was not put in.
  virtual Event enqueue(std::function<void()> work) = 0;
  virtual Event record() = 0;
  // Later work of this stream comes after the event. The event may be of another device.
  virtual void wait(const Event& event) = 0;
  virtual void synchronize() = 0;

  Device device() const noexcept { return device_; }
  std::uint64_t id() const noexcept { return id_; }  // never used again in this process

 private:
  Device device_;
  std::uint64_t id_;
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

// SPDX-License-Identifier: Apache-2.0
#include "berth/device/stream.h"

#include <atomic>

#include "berth/device/registry.h"

namespace berth {

namespace {
std::atomic<std::uint64_t> g_next_id{1};
}  // namespace

EventState::~EventState() = default;

StreamState::StreamState(Device device) noexcept : device_(device), id_(g_next_id.fetch_add(1, std::memory_order_relaxed)) {}
StreamState::~StreamState() = default;

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

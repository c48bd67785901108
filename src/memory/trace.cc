// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/trace.h"

#include <algorithm>
#include <new>

#include "memory/adaptor.h"
#include "os/lock/mutex.h"
#include "os/system.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

class Tracing : public Adaptor<TraceAdaptor> {
 public:
  Tracing(std::shared_ptr<Allocator> upstream, std::size_t most_events)
      : Adaptor("trace", std::move(upstream)), most_events_(most_events) {}

  Status obtain(const Request& request, Block& block) noexcept override {
    Status done = upstream_->obtain(request, block);
    if (done) write(TraceEvent::Operation::allocate, block);
    return done;
  }

  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override {
    Block own;
    if (known == nullptr) known = &own;
    const BlockVerdict freed = upstream_->give_back(block, when, known);
    if (freed == BlockVerdict::ok) write(TraceEvent::Operation::free, *known);
    return freed;
  }

  bool grow(Block& block, std::size_t bytes) noexcept override {
    const Block before = block;
    if (!upstream_->grow(block, bytes)) return false;
    write(TraceEvent::Operation::free, before);
    write(TraceEvent::Operation::allocate, block);
    return true;
  }

  std::vector<TraceEvent> events() const override {
    const os::Lock lock(mutex_);
    return events_;
  }

  std::uint64_t dropped() const override {
    const os::Lock lock(mutex_);
    return dropped_;
  }

  std::string to_csv() const override {
    std::vector<TraceEvent> events;
    std::vector<Tag> tags;
    {
      const os::Lock lock(mutex_);
      events = events_;
      tags = tags_;
    }
    const bool tagged = std::ranges::any_of(tags, [](Tag tag) { return static_cast<bool>(tag); });
    std::string out = tagged ? "op,id,bytes,stream,tag\n" : "op,id,bytes,stream\n";
    for (std::size_t i = 0; i < events.size(); ++i) {
      const TraceEvent& event = events[i];
      const char op = event.operation == TraceEvent::Operation::allocate ? 'a' : 'f';
      out += text::join(op, ',', event.serial, ',', event.bytes, ',', event.stream_id);
      if (tags[i]) out += text::join(',', text::printable(tags[i].word(), 255));
      out += '\n';
    }
    return out;
  }

 private:
  void write(TraceEvent::Operation operation, const Block& block) noexcept {
    const TraceEvent event{operation, block.serial, block.bytes, block.stream_id, os::steady_time_ns()};
    const os::Lock lock(mutex_);
    try {
      if (events_.size() < most_events_) {
        tags_.push_back(operation == TraceEvent::Operation::allocate ? block.tag : Tag());
        events_.push_back(event);
        return;
      }
    } catch (const std::bad_alloc&) {
      // Counted like an event beyond the bound: tracing must not make a program fail.
      tags_.resize(events_.size());
    }
    ++dropped_;
  }

  const std::size_t most_events_;
  mutable os::Mutex mutex_;
  std::vector<TraceEvent> events_ BERTH_GUARDED_BY(mutex_);  // size <= most_events_
  std::vector<Tag> tags_ BERTH_GUARDED_BY(mutex_);           // of each event; a free has none
  std::uint64_t dropped_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<TraceAdaptor> trace(std::shared_ptr<Allocator> upstream, std::size_t most_events) {
  return std::make_shared<Tracing>(std::move(upstream), most_events);
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "os/process/wait_ready.h"
#include "share/channel_state.h"
#include "share/errors.h"

// How the end of a channel sends tickets, and the lease that they need.
namespace berth {

using namespace internal;
using namespace internal::share;

// Finds or makes the carrier of the segment's tickets to the other end.
Result<std::shared_ptr<Carried>> Channel::State::carried(const std::shared_ptr<Segment>& segment) {
  {
    const os::Lock lock(mutex);
    const auto known = sent.find(segment->id());
    if (known != sent.end()) return known->second;
  }
  const auto made = std::make_shared<Carried>();
  Result<os::Descriptor> description = os::open_again(segment->descriptor());
  if (!description) return description.failure();
  made->description.set(std::move(*description));
  const Result<HolderId> lease = segment->take_lease(made->description.number());
  if (!lease) return lease.failure();
  made->segment = segment;
  made->lease = *lease;
  CarriedMap fresh;
  fresh.try_emplace(segment->id(), made);
  const os::Lock lock(mutex);
  sent.insert(fresh.extract(fresh.begin()));
  return made;
}

Status Channel::State::send_ticket(const TicketContent& content, Carried& carrier, const DeviceMemory* memory, std::uint64_t tag,
                                   std::uint64_t deadline_ns) {
  const std::vector<std::byte> body = ticket_bytes(content);
  const bool first = !carrier.delivered.load(std::memory_order_relaxed);
  std::vector<os::Descriptor> pieces;
  if (content.kind == TicketContent::Kind::device_memory) {
    Result<std::vector<os::Descriptor>> made = memory != nullptr ? files_of(*memory) : files_for(*carrier.segment, content.name);
    if (!made) return made.failure();
    pieces = std::move(*made);
  }
  std::array<int, os::kMostFiles> files;
  std::size_t count = 0;
  if (first) files[count++] = carrier.description.number();
  for (const os::Descriptor& piece : pieces) files[count++] = piece.number();
  const MessageHead head{.kind = MessageKind::storage,
                         .leases = static_cast<std::uint8_t>(first ? 1 : 0),
                         .pieces = static_cast<std::uint8_t>(pieces.size()),
                         .length = static_cast<std::uint32_t>(body.size()),
                         .lease = carrier.lease,
                         .tag = tag};
  const Status sent_it = os::send_packet(socket.number(), bytes_of(head), body, std::span(files).first(count), deadline_ns);
  if (sent_it) carrier.delivered.store(true, std::memory_order_relaxed);
  return sent_it;
}

void Channel::State::send(const TicketContent& content, const std::shared_ptr<Segment>& segment, const DeviceMemory* memory,
                          std::uint64_t tag, std::uint64_t deadline_ns) {
  const std::shared_ptr<Carried> carrier = value_or_throw(carried(segment), "sending a storage");
  const Status done = send_ticket(content, *carrier, memory, tag, deadline_ns);
  constexpr unsigned kForgetEvery = 16;
  if (done && ++sends % kForgetEvery == 0) forget_idle();
  if (done) return;
  if (done.failure().code == ErrorCode::peer_dead) drop_sent();
  throw_share_failure(done.failure(), "sending a storage");
}

// Segments of other processes that this process has no handles on will not be sent soon: neither end needs to
// keep their descriptors. Tickets in flight stay valid, since the other end receives this message after them;
// if the segment is ever sent again, its descriptor goes along again.
void Channel::State::forget_idle() noexcept {
  SegmentId id{};
  for (bool first = true;; first = false) {
    std::shared_ptr<Carried> carrier;
    {
      const os::Lock lock(mutex);
      const auto at = first ? sent.begin() : sent.upper_bound(id);
      if (at == sent.end()) return;
      id = at->first;
      carrier = at->second;
    }
    if (carrier->segment->is_own() || carrier->segment->has_handles()) continue;
    const MessageHead head{.kind = MessageKind::forget, .length = sizeof id};
    const std::span<const std::byte> body = std::as_bytes(std::span(&id, 1));
    if (!os::send_packet(socket.number(), bytes_of(head), body, {}, os::kNoWait)) return;
    CarriedMap::node_type gone;  // destroyed after unlocking
    const os::Lock lock(mutex);
    gone = sent.extract(id);
  }
}

// The other end is closed: drops the tickets in flight.
void Channel::State::drop_sent() noexcept {
  CarriedMap gone;
  const os::Lock lock(mutex);
  gone.swap(sent);
}

}  // namespace berth

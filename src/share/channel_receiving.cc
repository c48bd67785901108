// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "os/process/wait_ready.h"
#include "share/channel_state.h"
#include "share/exchange.h"

// How the end of a channel receives: what the messages of a peer may be, and what becomes of those that may not.
namespace berth {

using namespace internal;
using namespace internal::share;

namespace {

// A peer that neither reads what is refused nor stops to send more of it is told no more.
constexpr std::size_t kMostRefusals = 256;

Failure broken(const char* why) noexcept { return {ErrorCode::format_error, 0, why}; }

}  // namespace

void Channel::State::hear_to_forget(std::span<const std::byte> body) noexcept {
  SegmentId id;
  if (body.size() != sizeof id) return;
  std::memcpy(&id, body.data(), sizeof id);
  received.erase(id);
}

Result<std::shared_ptr<Segment>> Channel::State::segment_for(const TicketContent& content, const MessageHead& head, os::Packet& packet) {
  const auto known = received.find(content.segment);
  if (head.leases == 0) {
    if (known != received.end()) return known->second->segment;
    return broken("a storage came without the descriptor that it needs");
  }
  Result<std::shared_ptr<Segment>> segment = Segment::attach(packet.files[0].number());
  if (!segment) return segment;
  if ((*segment)->id() != content.segment) return broken("a storage came with the descriptor of another segment");
  if (!is_lease(head.lease) || head.lease >= kFirstLease + kMostLeases) return broken("a lease's number is out of range");
  const auto made = std::make_shared<Carried>();
  made->segment = *segment;
  made->lease = head.lease;
  made->description.set(std::move(packet.files[0]));
  received.insert_or_assign(content.segment, made);
  return segment;
}

// Tells the sender to drop the ticket, now or when there is room. If that fails, the sender is dead or does not read,
// and the lease ends with the channel.
void Channel::State::refuse(std::span<const std::byte> ticket) {
  if (refusals.size() < kMostRefusals && read_ticket(ticket)) refusals.emplace_back(ticket.begin(), ticket.end());
  send_refusals();
}

void Channel::State::send_refusals() noexcept {
  while (!refusals.empty()) {
    const MessageHead head{.kind = MessageKind::refused, .length = static_cast<std::uint32_t>(refusals.front().size())};
    if (!os::send_packet(socket.number(), bytes_of(head), refusals.front(), {}, os::kNoWait)) return;
    refusals.pop_front();
  }
}

// The other end rejected a ticket. It may lack the descriptor, so the next storage carries it again.
void Channel::State::hear_refusal(std::span<const std::byte> ticket) {
  const Result<TicketContent> content = read_ticket(ticket);
  if (!content) return;
  std::shared_ptr<Carried> carrier;
  {
    const os::Lock lock(mutex);
    const auto known = sent.find(content->segment);
    if (known == sent.end()) return;
    carrier = known->second;
  }
  carrier->delivered.store(false, std::memory_order_relaxed);
  if (content->further.empty()) carrier->segment->revoke(content->name);  // else it is of others too
}

Result<Storage> Channel::State::take_storage(const MessageHead& head, std::span<const std::byte> body, os::Packet& packet) {
  const Result<TicketContent> content = read_ticket(body);
  if (!content) return content.failure();
  const bool has_bytes = content->kind != TicketContent::Kind::no_bytes;
  if ((head.leases > 0 && !has_bytes) || (head.pieces > 0 && content->kind != TicketContent::Kind::device_memory)) {
    refuse(body);
    return broken("a storage came with descriptors that it does not need");
  }
  if (!has_bytes) return storage_without_bytes(content->layout);
  if (packet.files_lost) {
    refuse(body);
    return Failure{ErrorCode::too_many_descriptors, 0, "the descriptor that came with a storage was lost: this process has too many open"};
  }
  const Result<std::shared_ptr<Segment>> segment = segment_for(*content, head, packet);
  if (!segment) {
    refuse(body);
    return segment.failure();
  }
  Result<Storage> made = import_or_revoke(*content, *segment, std::span<os::Descriptor>(packet.files).subspan(head.leases));
  if (!made && head.leases > 0) {
    // A peer cannot fill this process with segments of which it holds nothing. With its next storage it sends the
    // lease again.
    received.erase(content->segment);
    refuse(body);
  }
  return made;
}

Result<Storage> Channel::State::import_or_revoke(const TicketContent& content, const std::shared_ptr<Segment>& segment,
                                                 std::span<os::Descriptor> files) {
  struct Unimported {  // revokes the ticket unless it was imported, or is for several imports, of others too
    Segment& from;
    const TicketName& name;
    bool done;
    ~Unimported() {
      if (!done) from.revoke(name);
    }
  } unimported{*segment, content.name, !content.further.empty()};
  Result<Storage> made = import_content(content, segment, false, files);
  unimported.done = unimported.done || made.ok();
  return made;
}

Result<std::optional<Channel::Message>> Channel::State::receive_one(std::uint64_t deadline_ns) {
  Result<os::Packet> packet = os::receive_packet(socket.number(), room, deadline_ns);
  if (!packet) return packet.failure();
  if (packet->cut || packet->bytes < sizeof(MessageHead)) return broken("a message is too short or too long");
  MessageHead head;
  std::memcpy(&head, room.data(), sizeof head);
  const std::span<const std::byte> body = std::span<const std::byte>(room).subspan(sizeof head, packet->bytes - sizeof head);
  if (head.magic != MessageHead::kMagic || head.length != body.size()) return broken("a message does not begin with berth's header");
  const std::size_t wanted = std::size_t{head.leases} + head.pieces;
  if (head.leases > 1 || (wanted > 0 && head.kind != MessageKind::storage) || (packet->files.size() != wanted && !packet->files_lost)) {
    if (head.kind == MessageKind::storage) refuse(body);
    return broken("a message has more or fewer descriptors than it says");
  }
  return take(head, body, *packet);
}

Result<std::optional<Channel::Message>> Channel::State::take(const MessageHead& head, std::span<const std::byte> body, os::Packet& packet) {
  switch (head.kind) {
    case MessageKind::storage: {
      Result<Storage> storage = take_storage(head, body, packet);
      if (!storage) return storage.failure();
      return std::optional(Message{.tag = head.tag, .storage = std::move(*storage)});
    }
    case MessageKind::bytes: return std::optional(Message{.tag = head.tag, .bytes = {body.begin(), body.end()}});
    case MessageKind::refused: hear_refusal(body); return std::optional<Message>();
    case MessageKind::forget: hear_to_forget(body); return std::optional<Message>();
  }
  return broken("a message is of a kind that this version does not know");
}

}  // namespace berth

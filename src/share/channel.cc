// SPDX-License-Identifier: Apache-2.0
#include "berth/share/channel.h"

#include <cerrno>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "os/process/wait_ready.h"
#include "os/system.h"
#include "share/channel_state.h"
#include "share/errors.h"
#include "share/exchange.h"

namespace berth {

using namespace internal;

using namespace internal::share;

namespace {

constexpr Advice kOfSockets[] = {
    {ErrorCode::unsupported, "pass a socket of AF_UNIX and SOCK_SEQPACKET, or let Channel::make_pair make both ends"},
};

// The peer of the socket. Throws unless it is a process of this user.
os::Peer checked_peer(const os::Descriptor& socket, const char* asked) {
  const os::Peer peer = value_or_throw(os::peer_of(socket.number()), asked, kOfSockets);
  if (peer.user != os::user_id()) {
    throw_share_failure({ErrorCode::permission_denied, 0, "a process of another user is at the other end"}, asked,
                        {{"user", peer.user}, {"process", peer.process}});
  }
  return peer;
}

}  // namespace

Channel::Channel(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Channel::Channel(Channel&& other) noexcept = default;
Channel& Channel::operator=(Channel&& other) noexcept = default;
Channel::~Channel() { close(); }

Channel Channel::adopt(int socket) {
  os::Descriptor taken(socket);
  auto state = std::make_unique<State>();
  state->peer_process = checked_peer(taken, "taking over a channel").process;
  state->socket.set(std::move(taken));
  return Channel(std::move(state));
}

std::pair<Channel, Channel> Channel::make_pair() {
  auto both = value_or_throw(os::make_socket_pair(), "making a channel");
  Channel one = adopt(both.first.take());
  return {std::move(one), adopt(both.second.take())};
}

Channel::State& Channel::State::opened(const std::unique_ptr<State>& state, const char* asked) {
  if (state != nullptr && state->socket) return *state;
  if (state != nullptr && state->origin.is_inherited()) {
    throw_share_failure({ErrorCode::fork_unsafe, 0, "the channel belongs to the process that forked"}, asked, {},
                        "connect in the child, or adopt a socket there that is the child's alone");
  }
  throw_share_failure({ErrorCode::peer_dead, 0, "this end of the channel is closed"}, asked, {}, "make a new channel");
}

void Channel::send(const Storage& storage, std::uint64_t tag, std::chrono::milliseconds patience) {
  State& state = State::opened(state_, "sending a storage");
  const std::uint64_t deadline_ns = os::deadline_after(patience);
  TicketContent content{.layout = layout_of(storage)};
  if (storage.buffer().size_bytes() == 0) {
    Carried none;  // there is no descriptor to deliver
    none.delivered = true;
    const Status done = state.send_ticket(content, none, nullptr, tag, deadline_ns);
    if (!done) throw_share_failure(done.failure(), "sending a storage");
    return;
  }
  const Exported held = value_or_throw(exported(storage), "sending a storage");
  const std::shared_ptr<Carried> carrier = value_or_throw(state.carried(held.segment), "sending a storage");
  content.kind = held.kind;
  content.segment = held.segment->id();
  content.name = value_or_throw(held.segment->make_ticket(held.entry, carrier->lease), "sending a storage");
  struct Unsent {  // revokes the ticket unless it was sent
    Segment* segment;
    const TicketName& name;
    ~Unsent() {
      if (segment != nullptr) segment->revoke(name);
    }
  } unsent{held.segment.get(), content.name};
  state.send(content, held.segment, held.memory.get(), tag, deadline_ns);
  unsent.segment = nullptr;
}

void Channel::send(const Ticket& ticket, std::uint64_t tag, std::chrono::milliseconds patience) {
  State& state = State::opened(state_, "sending a ticket");
  const std::uint64_t deadline_ns = os::deadline_after(patience);
  const TicketContent content = value_or_throw(read_ticket(ticket.bytes()), "sending a ticket");
  const std::shared_ptr<Segment> segment = Segment::find(content.segment);
  if (segment == nullptr)
    throw_share_failure({ErrorCode::not_found, 0, "this process has no descriptor of the segment that it names"}, "sending a ticket", {},
                        "send it from the process that exported it, or from one that holds a storage of its segment");
  state.send(content, segment, nullptr, tag, deadline_ns);
}

namespace {

[[noreturn]] void throw_too_long(std::size_t bytes, std::size_t limit) {
  const bool may_grow = limit < Channel::kMostBytes;
  throw ArgumentError(
      ErrorCode::limit_exceeded,
      {text::join("sending ", bytes, " bytes through a channel"),
       text::join(may_grow ? "the socket's buffer, which may not grow, takes a message of at most " : "a message has at most ", limit),
       may_grow ? "put them into a storage, and send that; or raise net.core.wmem_max" : "put them into a storage, and send that"},
      {{"bytes", bytes}, {"limit", limit}});
}

}  // namespace

void Channel::send_bytes(std::span<const std::byte> bytes, std::uint64_t tag, std::chrono::milliseconds patience) {
  if (bytes.size() > kMostBytes) throw_too_long(bytes.size(), kMostBytes);
  const State& state = State::opened(state_, "sending bytes through a channel");
  const MessageHead head{.kind = MessageKind::bytes, .length = static_cast<std::uint32_t>(bytes.size()), .tag = tag};
  const Status done = os::send_packet(state.socket.number(), bytes_of(head), bytes, {}, os::deadline_after(patience));
  if (done) return;
  if (done.failure().os_error == EMSGSIZE) throw_too_long(bytes.size(), os::longest_message(state.socket.number()) - sizeof head);
  throw_share_failure(done.failure(), "sending bytes through a channel");
}

Channel::Message Channel::receive(std::chrono::milliseconds patience) {
  State& state = State::opened(state_, "receiving from a channel");
  const std::uint64_t deadline_ns = os::deadline_after(patience);
  // Messages for the channel itself. When the time is up, a few more are passed over, since what is asked for may be
  // behind them.
  constexpr unsigned kPassedOver = 16;
  for (unsigned passed = 0;; ++passed) {
    state.send_refusals();
    Result<std::optional<Message>> message = state.receive_one(deadline_ns);
    if (message && *message) return *std::move(*message);
    if (message && (passed < kPassedOver || os::steady_time_ns() < deadline_ns)) continue;
    if (message)
      throw_share_failure({ErrorCode::timeout, 0, "nothing but messages for the channel arrived in that time"}, "receiving from a channel");
    if (message.failure().code == ErrorCode::peer_dead) state.drop_sent();
    throw_share_failure(message.failure(), "receiving from a channel");
  }
}

int Channel::descriptor() const noexcept { return state_ == nullptr ? -1 : state_->socket.number(); }
int Channel::peer_process() const noexcept { return state_ == nullptr ? 0 : state_->peer_process; }

// The socket is closed first: after that nothing arrives that needs a lease.
void Channel::close() noexcept {
  if (state_ == nullptr) return;
  state_->socket.close();
  state_->drop_sent();
  state_->received.clear();
}

}  // namespace berth

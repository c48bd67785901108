// SPDX-License-Identifier: Apache-2.0
#include "berth/share/channel.h"

#include <array>
#include <atomic>
#include <cstring>
#include <map>

#include "base/text.h"
#include "berth/base/error.h"
#include "os/file/own_descriptor.h"
#include "os/lock/mutex.h"
#include "os/process/socket.h"
#include "share/device_memory.h"
#include "share/errors.h"
#include "share/exchange.h"
#include "share/names.h"

namespace berth {

using namespace internal;

using namespace internal::share;

namespace {

enum class Kind : std::uint16_t { storage = 1, bytes = 2, refused = 3, forget = 4 };

// In front of every message. The descriptor that comes with the first storage of a segment is the lease: an
// open file description of the segment that both ends keep. Descriptors of device memory come with each storage
// on it, and are closed when it is mapped.
struct Head {
  static constexpr std::uint32_t kMagic = 0x3168'6362;  // "bch1"

  std::uint32_t magic = kMagic;
  Kind kind = Kind::bytes;
  std::uint8_t leases = 0;   // 1: the first descriptor is the lease
  std::uint8_t pieces = 0;   // descriptors of device memory that follow
  std::uint32_t length = 0;  // of what follows
  std::uint32_t lease = 0;   // its number
  std::uint64_t tag = 0;
};
static_assert(sizeof(Head) == 24);
static_assert(device::cuda::PieceRun::kMostPieces + 1 <= os::kMostFiles && device::cuda::PieceRun::kMostPieces <= UINT8_MAX);

std::span<const std::byte> bytes_of(const Head& head) noexcept { return std::as_bytes(std::span(&head, 1)); }

// A segment whose tickets go through the channel, and the open file description that keeps the lease alive.
struct Carried {
  std::shared_ptr<Segment> segment;
  os::OwnDescriptor description;
  HolderId lease = kNoHolder;
  std::atomic<bool> delivered{false};  // of `sent`: the other end has the description. Relaxed: a hint from the receiving thread

  ~Carried() {
    description.close();
    if (segment != nullptr && lease != kNoHolder) segment->end_lease(lease);
  }
};
using CarriedMap = std::map<SegmentId, std::shared_ptr<Carried>>;

Failure broken(const char* why) noexcept { return {ErrorCode::format_error, 0, why}; }

}  // namespace

struct Channel::State {
  os::OwnDescriptor socket;
  int peer_process = 0;
  CarriedMap received;  // used by the receiving thread only
  std::chrono::milliseconds known_patience{0};
  std::vector<std::byte> room = std::vector<std::byte>(sizeof(Head) + kMostBytes);
  os::Mutex mutex;
  CarriedMap sent BERTH_GUARDED_BY(mutex);  // the sending thread adds and drops elements
  unsigned sends = 0;                       // used by the sending thread only

  Result<std::shared_ptr<Carried>> carried(const std::shared_ptr<Segment>& segment);
  // `memory` is what the ticket stands for, if that is device memory of this process.
  Status send_ticket(const TicketContent& content, Carried& carrier, const DeviceMemory* memory, std::uint64_t tag,
                     std::chrono::milliseconds patience);
  void send(const TicketContent& content, const std::shared_ptr<Segment>& segment, const DeviceMemory* memory, std::uint64_t tag,
            std::chrono::milliseconds patience);
  Result<std::optional<Message>> receive_one(std::chrono::milliseconds patience);
  Result<Storage> take_storage(const Head& head, std::span<const std::byte> body, os::Packet& packet);
  Result<std::shared_ptr<Segment>> segment_for(const TicketContent& content, const Head& head, os::Packet& packet);
  void refuse(std::span<const std::byte> ticket) noexcept;
  void hear_refusal(std::span<const std::byte> ticket);
  void forget_idle() noexcept;  // does not allocate: the send has succeeded already
  void hear_to_forget(std::span<const std::byte> body) noexcept;
  void drop_sent() noexcept;
};

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
                                   std::chrono::milliseconds patience) {
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
  const Head head{.kind = Kind::storage,
                  .leases = static_cast<std::uint8_t>(first ? 1 : 0),
                  .pieces = static_cast<std::uint8_t>(pieces.size()),
                  .length = static_cast<std::uint32_t>(body.size()),
                  .lease = carrier.lease,
                  .tag = tag};
  const Status sent_it = os::send_packet(socket.number(), bytes_of(head), body, std::span(files).first(count), patience);
  if (sent_it) carrier.delivered.store(true, std::memory_order_relaxed);
  return sent_it;
}

void Channel::State::send(const TicketContent& content, const std::shared_ptr<Segment>& segment, const DeviceMemory* memory,
                          std::uint64_t tag, std::chrono::milliseconds patience) {
  const std::shared_ptr<Carried> carrier = value_or_throw(carried(segment), "sending a storage");
  const Status done = send_ticket(content, *carrier, memory, tag, patience);
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
    const Head head{.kind = Kind::forget, .length = sizeof id};
    const std::span<const std::byte> body = std::as_bytes(std::span(&id, 1));
    if (!os::send_packet(socket.number(), bytes_of(head), body, {}, std::chrono::milliseconds(0))) return;
    CarriedMap::node_type gone;  // destroyed after unlocking
    const os::Lock lock(mutex);
    gone = sent.extract(id);
  }
}

void Channel::State::hear_to_forget(std::span<const std::byte> body) noexcept {
  SegmentId id;
  if (body.size() != sizeof id) return;
  std::memcpy(&id, body.data(), sizeof id);
  received.erase(id);
}

// The other end is closed: drops the tickets in flight.
void Channel::State::drop_sent() noexcept {
  CarriedMap gone;
  const os::Lock lock(mutex);
  gone.swap(sent);
}

Result<std::shared_ptr<Segment>> Channel::State::segment_for(const TicketContent& content, const Head& head, os::Packet& packet) {
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

// Tells the sender to drop the ticket. If that fails, the sender is dead or does not read, and the lease ends
// with the channel.
void Channel::State::refuse(std::span<const std::byte> ticket) noexcept {
  const Head head{.kind = Kind::refused, .length = static_cast<std::uint32_t>(ticket.size())};
  (void)os::send_packet(socket.number(), bytes_of(head), ticket, {}, std::chrono::milliseconds(100)).ok();
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
  carrier->segment->revoke(content->name);
}

Result<Storage> Channel::State::take_storage(const Head& head, std::span<const std::byte> body, os::Packet& packet) {
  const Result<TicketContent> content = read_ticket(body);
  if (!content) return content.failure();
  if (content->kind == TicketContent::Kind::no_bytes) return storage_without_bytes(content->layout);
  if (packet.files_lost) {
    refuse(body);
    return Failure{ErrorCode::too_many_descriptors, 0, "the descriptor that came with a storage was lost: this process has too many open"};
  }
  const Result<std::shared_ptr<Segment>> segment = segment_for(*content, head, packet);
  if (!segment) {
    refuse(body);
    return segment.failure();
  }
  struct Unimported {  // revokes the ticket unless it was imported
    Segment& from;
    const TicketName& name;
    bool done = false;
    ~Unimported() {
      if (!done) from.revoke(name);
    }
  } unimported{**segment, content->name};
  Result<Storage> made = import_content(*content, *segment, false, std::span<os::Descriptor>(packet.files).subspan(head.leases));
  unimported.done = made.ok();
  return made;
}

// Returns nullopt when the message was for the channel itself.
Result<std::optional<Channel::Message>> Channel::State::receive_one(std::chrono::milliseconds patience) {
  Result<os::Packet> packet = os::receive_packet(socket.number(), room, patience, known_patience);
  if (!packet) return packet.failure();
  if (packet->cut || packet->bytes < sizeof(Head)) return broken("a message is too short or too long");
  Head head;
  std::memcpy(&head, room.data(), sizeof head);
  const std::span<const std::byte> body = std::span<const std::byte>(room).subspan(sizeof head, packet->bytes - sizeof head);
  if (head.magic != Head::kMagic || head.length != body.size()) return broken("a message does not begin with berth's header");
  const std::size_t wanted = std::size_t{head.leases} + head.pieces;
  if (head.leases > 1 || (wanted > 0 && head.kind != Kind::storage) || (packet->files.size() != wanted && !packet->files_lost)) {
    if (head.kind == Kind::storage) refuse(body);
    return broken("a message has more or fewer descriptors than it says");
  }
  if (head.kind == Kind::bytes) return std::optional(Message{.tag = head.tag, .bytes = {body.begin(), body.end()}});
  if (head.kind == Kind::refused) {
    hear_refusal(body);
    return std::optional<Message>();
  }
  if (head.kind == Kind::forget) {
    hear_to_forget(body);
    return std::optional<Message>();
  }
  if (head.kind != Kind::storage) return broken("a message is of a kind that this version does not know");
  Result<Storage> storage = take_storage(head, body, *packet);
  if (!storage) return storage.failure();
  return std::optional(Message{.tag = head.tag, .storage = std::move(*storage)});
}

namespace {

// The peer of the socket. Throws unless it is a process of this user.
os::Peer checked_peer(const os::Descriptor& socket, const char* asked) {
  const os::Peer peer = value_or_throw(os::peer_of(socket.number()), asked);
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

Channel Channel::connect(std::string_view name) {
  require_name(name, "connecting to a channel");
  return adopt(value_or_throw(os::connect_to(socket_name(name)), "connecting to a channel").take());
}

void Channel::send(const Storage& storage, std::uint64_t tag, std::chrono::milliseconds patience) {
  TicketContent content{.layout = layout_of(storage)};
  if (storage.buffer().size_bytes() == 0) {
    Carried none;  // there is no descriptor to deliver
    none.delivered = true;
    const Status done = state_->send_ticket(content, none, nullptr, tag, patience);
    if (!done) throw_share_failure(done.failure(), "sending a storage");
    return;
  }
  const Exported held = value_or_throw(exported(storage), "sending a storage");
  const std::shared_ptr<Carried> carrier = value_or_throw(state_->carried(held.segment), "sending a storage");
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
  state_->send(content, held.segment, held.memory.get(), tag, patience);
  unsent.segment = nullptr;
}

void Channel::send(const Ticket& ticket, std::uint64_t tag, std::chrono::milliseconds patience) {
  const TicketContent content = value_or_throw(read_ticket(ticket.bytes()), "sending a ticket");
  const std::shared_ptr<Segment> segment = Segment::find(content.segment);
  if (segment == nullptr)
    throw_share_failure({ErrorCode::not_found, 0, "this process has no descriptor of the segment that it names"}, "sending a ticket");
  state_->send(content, segment, nullptr, tag, patience);
}

void Channel::send_bytes(std::span<const std::byte> bytes, std::uint64_t tag, std::chrono::milliseconds patience) {
  if (bytes.size() > kMostBytes) {
    throw ArgumentError(ErrorCode::limit_exceeded,
                        {text::join("sending ", bytes.size(), " bytes through a channel"), text::join("a message has at most ", kMostBytes),
                         "put them into a storage, and send that"},
                        {{"bytes", bytes.size()}, {"limit", kMostBytes}});
  }
  const Head head{.kind = Kind::bytes, .length = static_cast<std::uint32_t>(bytes.size()), .tag = tag};
  const Status done = os::send_packet(state_->socket.number(), bytes_of(head), bytes, {}, patience);
  if (!done) throw_share_failure(done.failure(), "sending bytes through a channel");
}

Channel::Message Channel::receive(std::chrono::milliseconds patience) {
  for (;;) {
    Result<std::optional<Message>> message = state_->receive_one(patience);
    if (!message) {
      if (message.failure().code == ErrorCode::peer_dead) state_->drop_sent();
      throw_share_failure(message.failure(), "receiving from a channel");
    }
    if (*message) return *std::move(*message);
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

struct Listener::State {
  os::OwnDescriptor socket;
};

Listener::Listener(std::string_view name) : state_(std::make_unique<State>()) {
  require_name(name, "listening for channels");
  state_->socket.set(value_or_throw(os::listen_at(socket_name(name)), "listening for channels"));
}
Listener::Listener(Listener&& other) noexcept = default;
Listener& Listener::operator=(Listener&& other) noexcept = default;
Listener::~Listener() = default;

Channel Listener::accept(std::chrono::milliseconds patience) {
  return Channel::adopt(value_or_throw(os::accept_from(state_->socket.number(), patience), "waiting for a channel").take());
}
int Listener::descriptor() const noexcept { return state_->socket.number(); }

}  // namespace berth

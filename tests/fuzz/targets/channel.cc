// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>

#include "berth/base/error.h"
#include "berth/share/channel.h"
#include "berth/share/share.h"
#include "fuzz/hostile_segment.h"
#include "fuzz/tickets.h"

// Messages of a hostile peer, with descriptors that it chose: a channel hands out a message or an error, what it hands
// out can be read, and no descriptor that came stays open.
namespace berth::testing::fuzz {
namespace {

constexpr std::size_t kMostFiles = 4;  // with one message
constexpr std::size_t kHeadBytes = 24;
using internal::share::kFirstLease;

struct Head {  // in front of a message, as in src/share/channel.cc
  std::uint32_t magic = 0x3168'6362;
  std::uint16_t kind = 0;
  std::uint8_t leases = 0;
  std::uint8_t pieces = 0;
  std::uint32_t length = 0;
  std::uint32_t lease = 0;
  std::uint64_t tag = 0;
};
static_assert(sizeof(Head) == kHeadBytes);

const Storage& shared() {
  static const Storage x = zeros({4, 5, 6}, DType::f32, "shared");
  return x;
}

// One that nobody has imported yet: there are no more of them than the table of tickets has room for.
std::string& live_ticket() {
  static std::string made;
  if (made.empty()) made = text_of(export_ticket(shared().transpose(0, 1)).bytes());
  return made;
}

// The ticket of a live storage, with changes.
std::string ticket_from(Draw& draw) {
  std::string ticket = live_ticket();
  for (std::uint8_t left = draw.below(4); left > 0; --left) {
    const std::size_t at = draw.byte() % ticket.size();
    ticket[at] = static_cast<char>(draw.byte());
  }
  return mend_ticket(ticket);
}

std::string packet_from(Draw& draw, std::size_t files) {
  const std::uint8_t form = draw.byte();
  const std::string body = (form & 1) != 0 ? ticket_from(draw) : std::string(draw.bytes(draw.byte()));
  Head head{.kind = static_cast<std::uint16_t>(1 + draw.below(5)), .length = static_cast<std::uint32_t>(body.size())};
  head.leases = files > 0 ? 1 : 0;
  head.pieces = static_cast<std::uint8_t>(files - head.leases);
  head.lease = (form & 2) != 0 ? draw.number<std::uint32_t>() : kFirstLease + draw.below(4);
  std::string packet(kHeadBytes, '\0');
  std::memcpy(packet.data(), &head, sizeof head);
  if ((form & 4) != 0) packet[draw.byte() % kHeadBytes] = static_cast<char>(draw.byte());
  return (form & 8) != 0 ? std::string(draw.bytes(draw.byte())) : packet + body;
}

int file_from(Draw& draw, int socket) {
  static const HostileSegment segment;
  static const File empty;
  switch (draw.below(4)) {
    case 0: segment.fill(draw); return segment.number();
    case 1: return shared_location(shared()).descriptor;
    case 2: return empty.number();
    default: return socket;
  }
}

void send_packet(int socket, const std::string& packet, const std::array<int, kMostFiles>& files, std::size_t count) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> control{};
  iovec part{const_cast<char*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), files.data(), count * sizeof(int));
  }
  (void)sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The rest of the messages is received although one of them is refused.
bool receive(Channel& channel) {
  try {
    const Channel::Message message = channel.receive(std::chrono::milliseconds(0));
    if (!message.storage) return true;
    live_ticket().clear();
    require(message.storage->buffer().size_bytes() <= HostileSegment::kBytes, "a storage takes no more memory than was shared");
    read_all(*message.storage);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void run(std::string_view bytes) {
  (void)shared_location(shared());
  const int next = next_descriptor();
  std::size_t received = 0;
  {
    int both[2];
    require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) == 0, "the machine has sockets");
    Channel channel = Channel::adopt(both[0]);
    Draw draw(bytes);
    for (int left = 6; left > 0 && !draw.empty(); --left) {
      std::array<int, kMostFiles> files{};
      const std::size_t count = draw.below(8) < 4 ? 0 : draw.below(kMostFiles + 1);
      for (std::size_t i = 0; i < count; ++i) files[i] = file_from(draw, both[1]);
      send_packet(both[1], packet_from(draw, count), files, count);
      received += receive(channel) ? 1 : 0;
      std::array<char, 4096> answer;
      (void)recv(both[1], answer.data(), answer.size(), MSG_DONTWAIT);
    }
    close(both[1]);
  }
  require(next_descriptor() == next, "a channel that is closed leaves no descriptor open");
  reap_shared();
  if (received == 0) throw FormatError(ErrorCode::format_error, {"receiving", "nothing was", "send something"});
}

const Registered channel({.name = "channel", .run = run});

}  // namespace
}  // namespace berth::testing::fuzz

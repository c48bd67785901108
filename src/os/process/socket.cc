// SPDX-License-Identifier: Apache-2.0
#include "os/process/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/inject.h"
#include "os/process/no_cancel.h"
#include "os/process/wait_ready.h"
#include "os/system.h"

namespace berth::internal::os {

namespace {

Failure socket_failure(const char* why) noexcept {
  switch (errno) {
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN: return {ErrorCode::peer_dead, errno, "the other end of the channel is closed"};
    case ECONNREFUSED: return {ErrorCode::not_found, errno, "no process listens under that name"};
    case EADDRINUSE: return {ErrorCode::already_exists, errno, "another process listens under that name"};
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS: return {ErrorCode::too_many_descriptors, errno, why};
    case EACCES:
    case EPERM: return {ErrorCode::permission_denied, errno, why};
    case ENOMEM:
    case ENOBUFS: return {ErrorCode::out_of_memory, errno, why};
    case ETIMEDOUT: return {ErrorCode::timeout, errno, why};
    default: return {ErrorCode::device_error, errno, why};
  }
}

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;

  explicit Address(std::string_view text) noexcept {
    name.sun_family = AF_UNIX;
    const std::size_t count = std::min(text.size(), sizeof(name.sun_path) - 1);
    std::memcpy(name.sun_path + 1, text.data(), count);  // after a null byte: the abstract namespace
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  }
};

Descriptor new_socket() noexcept { return Descriptor(must_fail("socket") ? -1 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

// Tries first, which nearly always succeeds, and polls only when that would block.
template <class Try>
ssize_t now_or_later(int socket, short what, std::chrono::milliseconds patience, Try try_once) noexcept {
  std::uint64_t until = 0;
  for (;;) {
    const ssize_t result = try_once();
    if (result >= 0) return result;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (until == 0) until = deadline_after(patience);
    if (!wait_ready(socket, what, until)) return -1;
  }
}

struct ControlRoom {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kMostFiles)];
};

void take_files(msghdr& message, Packet& packet) noexcept {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof number);
      Descriptor file(number);  // closed here if push_back throws
      try {
        packet.files.push_back(std::move(file));
      } catch (const std::bad_alloc&) {
        packet.files_lost = true;
      }
    }
  }
}

}  // namespace

Result<std::pair<Descriptor, Descriptor>> make_socket_pair() noexcept {
  int both[2];
  if (must_fail("socketpair") || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) != 0)
    return socket_failure("no socket pair can be created");
  return std::pair(Descriptor(both[0]), Descriptor(both[1]));
}

Result<Descriptor> listen_at(std::string_view name) noexcept {
  Descriptor made = new_socket();
  if (!made) return socket_failure("no socket can be created");
  const Address address(name);
  if (must_fail("bind") || bind(made.number(), reinterpret_cast<const sockaddr*>(&address.name), address.length) != 0)
    return socket_failure("the socket cannot listen under that name");
  if (must_fail("listen") || listen(made.number(), 64) != 0) return socket_failure("the socket cannot listen under that name");
  return made;
}

Result<Descriptor> connect_to(std::string_view name) noexcept {
  const NoCancel whole;
  Descriptor made = new_socket();
  if (!made) return socket_failure("no socket can be created");
  const Address address(name);
  for (;;) {
    if (!must_fail("connect") && connect(made.number(), reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0) return made;
    if (errno != EINTR) return socket_failure("the name cannot be connected to");
  }
}

Result<Descriptor> accept_from(int listener, std::chrono::milliseconds patience) noexcept {
  const NoCancel whole;
  const std::uint64_t until = deadline_after(patience);
  for (;;) {
    if (!wait_ready(listener, POLLIN, until)) return socket_failure("no process connected in that time");
    Descriptor made(must_fail("accept") ? -1 : accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (made) return made;
    if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) return socket_failure("the connection cannot be accepted");
  }
}

Result<Peer> peer_of(int socket) noexcept {
  int type = 0;
  socklen_t length = sizeof type;
  if (must_fail("getsockopt") || getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) != 0)
    return socket_failure("the descriptor is not a socket");
  if (type != SOCK_SEQPACKET) return Failure{ErrorCode::unsupported, 0, "the socket is not of the kind SOCK_SEQPACKET"};
  ucred who{};
  length = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0)
    return socket_failure("the kernel does not say who is at the other end");
  return Peer{who.uid, who.pid};
}

Status send_packet(int socket, std::span<const std::byte> head, std::span<const std::byte> body, std::span<const int> files,
                   std::chrono::milliseconds patience) noexcept {
  const NoCancel whole;
  iovec parts[2] = {{const_cast<std::byte*>(head.data()), head.size()}, {const_cast<std::byte*>(body.data()), body.size()}};
  ControlRoom control;
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = body.empty() ? 1 : 2;
  if (!files.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(part), files.data(), files.size_bytes());
  }
  const auto once = [&]() -> ssize_t { return must_fail("sendmsg") ? -1 : sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT); };
  if (now_or_later(socket, POLLOUT, patience, once) < 0) return socket_failure("the message cannot be sent in that time");
  return {};
}

namespace {

// Sets the receive timeout. To the kernel 0 means for ever, so a patience of 0 uses MSG_DONTWAIT instead.
Status set_patience(int socket, std::chrono::milliseconds patience, std::chrono::milliseconds& known) noexcept {
  if (patience == known || patience.count() <= 0) return {};
  timeval time{};
  time.tv_sec = static_cast<time_t>(std::min<std::int64_t>(patience.count() / 1000, std::int64_t{1} << 31));
  time.tv_usec = static_cast<suseconds_t>(patience.count() % 1000 * 1000);
  if (must_fail("setsockopt") || setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) != 0)
    return socket_failure("the timeout cannot be set");
  known = patience;
  return {};
}

}  // namespace

Result<Packet> receive_packet(int socket, std::span<std::byte> room, std::chrono::milliseconds patience,
                              std::chrono::milliseconds& known) noexcept {
  const NoCancel whole;
  if (const Status set = set_patience(socket, patience, known); !set) return set.failure();
  iovec part{room.data(), room.size()};
  ControlRoom control;
  msghdr message{};
  const int flags = MSG_CMSG_CLOEXEC | (patience.count() <= 0 ? MSG_DONTWAIT : 0);
  std::uint64_t until = 0;
  ssize_t got = -1;
  for (;;) {
    message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    got = must_fail("recvmsg") ? -1 : recvmsg(socket, &message, flags);
    if (got >= 0 || errno != EINTR) break;
    // A signal restarts the wait, but only until the deadline.
    if (until == 0) until = deadline_after(patience);
    if (steady_time_ns() > until) errno = EAGAIN;
    if (errno == EAGAIN) break;
  }
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) errno = ETIMEDOUT;
  if (got < 0) return socket_failure("nothing arrived in that time");
  Packet packet;
  packet.bytes = static_cast<std::size_t>(got);
  packet.cut = (message.msg_flags & MSG_TRUNC) != 0;
  packet.files_lost = (message.msg_flags & MSG_CTRUNC) != 0;
  take_files(message, packet);
  // Every message has a head; an empty one is end-of-file.
  if (got == 0 && packet.files.empty() && !packet.files_lost)
    return Failure{ErrorCode::peer_dead, 0, "the other end of the channel is closed"};
  return packet;
}

}  // namespace berth::internal::os

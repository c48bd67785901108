// SPDX-License-Identifier: Apache-2.0
#include "os/process/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "os/file/file_calls.h"
#include "os/inject.h"
#include "os/process/no_cancel.h"
#include "os/process/socket_calls.h"
#include "os/process/wait_ready.h"
#include "os/system.h"

namespace berth::internal::os {

namespace {

// Tries first, which nearly always succeeds, and polls only when that would block. `try_once` must not block: the
// socket may have become ready for somebody else.
template <class Try>
ssize_t now_or_later(int socket, short what, std::uint64_t deadline_ns, Try try_once) noexcept {
  for (;;) {
    const ssize_t result = try_once();
    if (result >= 0) return result;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (steady_time_ns() >= deadline_ns) {
      errno = ETIMEDOUT;
      return -1;
    }
    if (!wait_ready(socket, what, deadline_ns) && errno != ETIMEDOUT) return -1;
  }
}

// Room for all the descriptors of a message, and for what the kernel adds when someone has asked it to
// (SO_PASSCRED, SO_PASSPIDFD and others).
struct ControlRoom {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kMostFiles) + 512];
};

#ifndef SCM_PIDFD
constexpr int SCM_PIDFD = 4;  // Linux 6.5; the number is part of the kernel's interface
#endif

void take_file(int number, Packet& packet) noexcept {
  Descriptor file(number);  // closed here if push_back throws
  try {
    packet.files.push_back(std::move(file));
  } catch (const std::bad_alloc&) {
    packet.files_lost = true;
  }
}

void take_files(msghdr& message, Packet& packet) noexcept {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || (part->cmsg_type != SCM_RIGHTS && part->cmsg_type != SCM_PIDFD)) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof number);
      if (part->cmsg_type == SCM_RIGHTS)
        take_file(number, packet);
      else
        Descriptor(number).close();  // nobody here asked for it
    }
  }
}

// Lets the socket's buffer take a message of that length. The kernel doubles the value, and needs 32 bytes of it.
bool make_room_for(int socket, std::size_t bytes) noexcept {
  const int needed = static_cast<int>(bytes + 32);
  if (must_fail("setsockopt") || setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &needed, sizeof needed) != 0) return false;
  return longest_message(socket) >= bytes;
}

}  // namespace

Result<std::pair<Descriptor, Descriptor>> make_socket_pair() noexcept {
  int both[2];
  if (must_fail("socketpair") || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) != 0)
    return socket_failure("no socket pair can be created");
  return std::pair(Descriptor(both[0]), Descriptor(both[1]));
}

Result<Descriptor> accept_from(int listener, std::uint64_t deadline_ns) noexcept {
  const NoCancel whole;
  const auto once = [&]() -> ssize_t {
    // Every time, since whoever has the descriptor can change it. Another thread may take the connection first.
    if (fcntl(listener, F_SETFL, O_NONBLOCK) != 0) return -1;
    const int made = must_fail("accept") ? -1 : accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (made < 0 && errno == ECONNABORTED) errno = EAGAIN;
    return made;
  };
  const ssize_t made = now_or_later(listener, POLLIN, deadline_ns, once);
  if (made < 0) return socket_failure("the connection cannot be accepted", "no process connected in that time");
  return Descriptor(static_cast<int>(made));
}

Result<Peer> peer_of(int socket) noexcept {
  int type = 0;
  int family = 0;
  socklen_t length = sizeof type;
  if (must_fail("getsockopt") || getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) != 0 ||
      getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0)
    return socket_failure("the descriptor is not a socket");
  if (family != AF_UNIX || type != SOCK_SEQPACKET)
    return Failure{ErrorCode::unsupported, 0, "the socket is not of the family AF_UNIX and the kind SOCK_SEQPACKET"};
  ucred who{};
  length = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0)
    return socket_failure("the kernel does not say who is at the other end");
  // Nobody: the kernel's user id of a socket without a peer.
  if (who.uid == static_cast<uid_t>(-1)) return Failure{ErrorCode::invalid_argument, 0, "the socket is not connected"};
  return Peer{who.uid, who.pid};
}

Status send_packet(int socket, std::span<const std::byte> head, std::span<const std::byte> body, std::span<const int> files,
                   std::uint64_t deadline_ns) noexcept {
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
  if (now_or_later(socket, POLLOUT, deadline_ns, once) >= 0) return {};
  if (errno == EMSGSIZE) {
    if (make_room_for(socket, head.size() + body.size()) && now_or_later(socket, POLLOUT, deadline_ns, once) >= 0) return {};
    if (errno != ETIMEDOUT && errno != EPIPE) errno = EMSGSIZE;  // whatever refused the room
  }
  return socket_failure("the message cannot be sent", "the other end did not read enough in that time to make room for the message");
}

std::size_t longest_message(int socket) noexcept {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  constexpr int kKernels = 32;  // of the buffer, for the kernel
  if (getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, &length) != 0 || bytes < kKernels) return 0;
  return static_cast<std::size_t>(bytes - kKernels);
}

namespace {

// To recvmsg the end and an empty message look the same. REQUIRES: it returned 0.
bool is_end(int socket) noexcept {
  pollfd one{socket, POLLRDHUP, 0};
  if (insist("poll", [&] { return poll(&one, 1, 0); }) == 0) return false;
  // The peer is closed, so that no more will come; but what it sent before may be there.
  int left = 0;
  return ioctl(socket, FIONREAD, &left) != 0 || left == 0;
}

}  // namespace

Result<Packet> receive_packet(int socket, std::span<std::byte> room, std::uint64_t deadline_ns) noexcept {
  const NoCancel whole;
  iovec part{room.data(), room.size()};
  ControlRoom control;
  msghdr message{};
  const auto once = [&]() -> ssize_t {
    message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    return must_fail("recvmsg") ? -1 : recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  };
  ssize_t got = now_or_later(socket, POLLIN, deadline_ns, once);
  // The kernel says once, and first, that the peer was closed before it had read everything. What it sent is still
  // there.
  if (got < 0 && errno == ECONNRESET) got = now_or_later(socket, POLLIN, deadline_ns, once);
  if (got < 0) return socket_failure("no message can be received", "nothing arrived in that time");
  Packet packet;
  packet.bytes = static_cast<std::size_t>(got);
  packet.cut = (message.msg_flags & MSG_TRUNC) != 0;
  packet.files_lost = (message.msg_flags & MSG_CTRUNC) != 0;
  take_files(message, packet);
  if (got == 0 && packet.files.empty() && !packet.files_lost && is_end(socket))
    return Failure{ErrorCode::peer_dead, 0, "the other end of the channel is closed"};
  return packet;
}

}  // namespace berth::internal::os

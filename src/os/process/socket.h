// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// Unix domain sockets that preserve message boundaries (SOCK_SEQPACKET) and pass file descriptors. Writing to a
// closed peer raises no SIGPIPE. Any thread.
//
// A call that waits has a deadline (os/process/wait_ready.h), and keeps it whatever the flags and timeouts of the
// socket: they belong to an open file description that other processes may have too. A deadline in the past means
// not to wait.
namespace berth::internal::os {

Result<std::pair<Descriptor, Descriptor>> make_socket_pair() noexcept;
Result<Descriptor> accept_from(int listener, std::uint64_t deadline_ns) noexcept;  // `timeout`

struct Peer {
  std::uint32_t user = 0;
  int process = 0;  // informative only: it may be of another pid namespace, or gone
};
// The credentials of the peer. Fails for a descriptor that is not a connected socket of this kind.
Result<Peer> peer_of(int socket) noexcept;

constexpr std::size_t kMostFiles = 253;  // per message: the kernel's limit (SCM_MAX_FD)

// Sends both parts as one message, with the file descriptors. Fails with `timeout` when the socket's buffer
// stays full until the deadline, with `peer_dead` when the peer is closed, and with `limit_exceeded` when a message
// of that length does not fit the buffer and the system lets it grow no further. REQUIRES: at most kMostFiles
// descriptors.
Status send_packet(int socket, std::span<const std::byte> head, std::span<const std::byte> body, std::span<const int> files,
                   std::uint64_t deadline_ns) noexcept;
// The longest message that the socket's buffer takes; 0 when unknown.
std::size_t longest_message(int socket) noexcept;

struct Packet {
  std::size_t bytes = 0;               // 0: the peer sent an empty message
  bool cut = false;                    // the message was truncated to the buffer
  bool files_lost = false;             // file descriptors were dropped, for lack of room or heap
  std::vector<Descriptor> files = {};  // close-on-exec
};
// Fails with `timeout`, or with `peer_dead` when the peer is closed and everything it sent was received.
Result<Packet> receive_packet(int socket, std::span<std::byte> room, std::uint64_t deadline_ns) noexcept;

}  // namespace berth::internal::os

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// Unix domain sockets that preserve message boundaries (SOCK_SEQPACKET) and pass file descriptors. Writing to a
// closed peer raises no SIGPIPE. Names are in the abstract namespace, not in a file system: a name vanishes
// with the socket that is bound to it. Any thread.
namespace berth::internal::os {

Result<std::pair<Descriptor, Descriptor>> make_socket_pair() noexcept;
Result<Descriptor> listen_at(std::string_view name) noexcept;  // `already_exists` when the name is taken
Result<Descriptor> connect_to(std::string_view name) noexcept;
Result<Descriptor> accept_from(int listener, std::chrono::milliseconds patience) noexcept;  // `timeout`

struct Peer {
  std::uint32_t user = 0;
  int process = 0;  // informative only: it may be of another pid namespace, or gone
};
// The credentials of the peer. Fails for a descriptor that is not a connected socket of this kind.
Result<Peer> peer_of(int socket) noexcept;

constexpr std::size_t kMostFiles = 253;  // per message: the kernel's limit (SCM_MAX_FD)

// Sends both parts as one message, with the file descriptors. Fails with `timeout` when the socket's buffer
// stays full for that time, and with `peer_dead` when the peer is closed. REQUIRES: at most kMostFiles
// descriptors.
Status send_packet(int socket, std::span<const std::byte> head, std::span<const std::byte> body, std::span<const int> files,
                   std::chrono::milliseconds patience) noexcept;

struct Packet {
  std::size_t bytes = 0;
  bool cut = false;                    // the message was truncated to the buffer
  bool files_lost = false;             // file descriptors were dropped, for lack of room or heap
  std::vector<Descriptor> files = {};  // close-on-exec
};
// Fails with `timeout`, or with `peer_dead` when the peer is closed and everything it sent was received. The
// kernel keeps a socket's timeout, which saves two system calls per message: `known` caches the timeout that
// was last set, 0 at first; the caller keeps it with the socket.
Result<Packet> receive_packet(int socket, std::span<std::byte> room, std::chrono::milliseconds patience,
                              std::chrono::milliseconds& known) noexcept;

}  // namespace berth::internal::os

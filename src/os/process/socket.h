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

// Sockets between processes of one machine that keep messages whole (SOCK_SEQPACKET) and carry descriptors. Nobody is sent a signal when the
// other end is gone. Names are in the kernel's own name space, not in a file system: they go with the socket that has them.
namespace berth::internal::os {

Result<std::pair<Descriptor, Descriptor>> make_socket_pair() noexcept;
Result<Descriptor> listen_at(std::string_view name) noexcept;  // `already_exists` when the name is taken
Result<Descriptor> connect_to(std::string_view name) noexcept;
Result<Descriptor> accept_from(int listener, std::chrono::milliseconds patience) noexcept;  // `timeout`

struct Peer {
  std::uint32_t user = 0;
  int process = 0;  // a label: it may be of another name space, or gone
};
// Who is at the other end. Fails for what is no connected socket of this kind.
Result<Peer> peer_of(int socket) noexcept;

constexpr std::size_t kMostFiles = 253;  // with one message: the kernel's bound

// The parts as one message, with the descriptors. REQUIRES: kMostFiles at most. `timeout` when there is no room for it in that time, `peer_dead` when nobody will read it.
Status send_packet(int socket, std::span<const std::byte> head, std::span<const std::byte> body, std::span<const int> files,
                   std::chrono::milliseconds patience) noexcept;

struct Packet {
  std::size_t bytes = 0;
  bool cut = false;                    // the message was longer than there was room
  bool files_lost = false;             // descriptors were sent that this process had no room or no heap for
  std::vector<Descriptor> files = {};  // none is inherited by programs that are started
};
// `timeout`, or `peer_dead` when the other end is closed and everything it sent was received. The kernel keeps the patience of a socket, which
// saves two calls for each message: `known` is what it was last told, 0 at first, and the caller's to keep with the socket.
Result<Packet> receive_packet(int socket, std::span<std::byte> room, std::chrono::milliseconds patience,
                              std::chrono::milliseconds& known) noexcept;

}  // namespace berth::internal::os

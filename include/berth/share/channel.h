// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/export.h"
#include "berth/share/ticket.h"
#include "berth/storage/storage.h"

// A channel sends storages between two processes of the same user. It passes the file descriptor of a segment
// once; after that each storage is a short message with a ticket.
//
//     auto [mine, theirs] = Channel::make_pair();     // pass `theirs` to a child, or connect to a Listener
//     mine.send(x, 7);
//     ...
//     Channel::Message m = theirs.receive();          // m.tag == 7, *m.storage has x's bytes
//
// A sent storage is held until it is received, even if its sender dies in the meantime; if the receiver dies,
// it is released. Messages arrive whole and in order, or not at all. A channel leaves nothing in the file
// system, and its descriptors are close-on-exec.
//
// A call takes no longer than its `patience`, whatever the peer does or does not do, and whatever others who have
// the same socket do to its flags; with 0 it does not wait.
//
// Two threads may use a channel concurrently, one to send and one to receive. In a forked child an inherited
// channel is closed.
namespace berth {

class BERTH_EXPORT Channel {
 public:
  static constexpr std::chrono::milliseconds kPatience{10'000};
  static constexpr std::size_t kMostBytes = 64 * 1024;  // of a message

  struct Message {
    std::uint64_t tag = 0;
    std::optional<Storage> storage = {};  // or
    std::vector<std::byte> bytes = {};
  };

  static std::pair<Channel, Channel> make_pair();

  // Takes ownership of a connected socket (AF_UNIX, SOCK_SEQPACKET), such as one that a child inherited. Throws
  // AccessError(permission_denied) when the peer belongs to another user, ArgumentError(invalid_argument) when the
  // socket is not connected, DeviceError(unsupported) when it is of another kind.
  static Channel adopt(int socket);

  // Connects to a Listener of that name. It need not accept first. Throws AccessError: not_found when there is none,
  // untrusted when the folder or the name is not this user's; DeviceError(timeout) when its queue stays full for
  // `patience`.
  static Channel connect(std::string_view name, std::chrono::milliseconds patience = kPatience);

  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  ~Channel();

  // Sends a storage, or bytes. Throws DeviceError: peer_dead when the other end is closed, timeout when the
  // socket buffer stays full for `patience`; then nothing is sent or held. The storage must be exportable: see
  // export_ticket. At most kMostBytes; fewer where the system lets no socket buffer be that large
  // (net.core.wmem_max): ArgumentError(limit_exceeded).
  void send(const Storage& storage, std::uint64_t tag = 0, std::chrono::milliseconds patience = kPatience);
  void send(const Ticket& ticket, std::uint64_t tag = 0, std::chrono::milliseconds patience = kPatience);
  void send_bytes(std::span<const std::byte> bytes, std::uint64_t tag = 0, std::chrono::milliseconds patience = kPatience);

  // Returns the next message. Throws DeviceError: timeout, peer_dead once everything was received,
  // too_many_descriptors when this process could not accept a descriptor that was sent (the sender is told, and
  // sends it again with its next storage); FormatError for a malformed message; and what import_ticket throws.
  // A rejected message is lost, and its ticket is freed.
  Message receive(std::chrono::milliseconds patience = kPatience);

  // For poll, or to pass to a child process. The channel keeps ownership.
  int descriptor() const noexcept;
  int peer_process() const noexcept;  // informational: the process that made the other end
  void close() noexcept;

 private:
  friend class Listener;
  struct BERTH_HIDDEN State;
  explicit Channel(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// Accepts connections under a name. The name is a file in the folder of named storages (share/named.h), so that no
// other user can connect, take the name first, or fill the queue. It is removed with the listener; if its process was
// killed, by the next that connects to or listens under that name, or by reap_listeners. Processes that share the folder
// reach each other, in whatever namespaces they are. In a forked child an inherited listener is closed.
class BERTH_EXPORT Listener {
 public:
  // Throws ArgumentError(invalid_name); AccessError: already_exists when a process listens there already, untrusted
  // when the folder is not this user's; DeviceError: device_unavailable where the folder cannot be made, timeout
  // when a process was stopped while it makes or removes such a name.
  explicit Listener(std::string_view name);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  // Throws DeviceError(timeout), AccessError(permission_denied) when the superuser has connected as another user;
  // that connection is closed. Any thread.
  Channel accept(std::chrono::milliseconds patience = Channel::kPatience);
  int descriptor() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct NamedListener {
  std::string name = {};
  bool is_alive = false;
};
// The names in the folder that processes listen under, or did when they were killed.
BERTH_EXPORT std::vector<NamedListener> list_listeners();
// Removes the names that nobody listens under. Returns them.
BERTH_EXPORT std::vector<std::string> reap_listeners();

}  // namespace berth

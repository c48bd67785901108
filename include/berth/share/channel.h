// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/export.h"
#include "berth/share/ticket.h"
#include "berth/storage/storage.h"

// A channel between two processes of one user, through which storages travel. It sends the descriptor of a segment once, and after that a
// ticket is a short message.
//
//     auto [mine, theirs] = Channel::make_pair();     // give `theirs` to a child; or Channel::listen and Channel::connect by name
//     mine.send(x, 7);
//     ...
//     Channel::Message m = theirs.receive();          // m.tag == 7, *m.storage has x's bytes
//
// What was sent is held until it is received, also when its sender dies meanwhile; when the receiver dies, it is dropped. Messages arrive whole,
// in order, or not at all. Nothing of a channel is left in a file system, and no program that is started inherits it.
//
// Two threads may use a channel at once, one to send and one to receive. In a forked child an inherited channel is closed.
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

  // Takes over a connected socket of the kind SOCK_SEQPACKET, as a child got it. Throws AccessError(permission_denied) when another user is
  // at the other end.
  static Channel adopt(int socket);

  // Connects to a Listener of that name. Throws AccessError: not_found when there is none, permission_denied when it is another user's.
  static Channel connect(std::string_view name);

  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  ~Channel();

  // The storage, or bytes. Throws DeviceError: peer_dead when the other end is closed, timeout when it has left so much unread that there is
  // no room; then nothing is sent or held. A storage must be one that can be exported: see export_ticket.
  void send(const Storage& storage, std::uint64_t tag = 0, std::chrono::milliseconds patience = kPatience);
  void send(const Ticket& ticket, std::uint64_t tag = 0, std::chrono::milliseconds patience = kPatience);
  void send_bytes(std::span<const std::byte> bytes, std::uint64_t tag = 0, std::chrono::milliseconds patience = kPatience);

  // The next message. Throws DeviceError: timeout, peer_dead once everything was received, too_many_descriptors when one that was sent
  // could not be taken in (the sender is told, and sends it again with its next storage); FormatError for a message that breaks the
  // rules; and what import_ticket throws. A message that is refused is gone, and its ticket is free.
  Message receive(std::chrono::milliseconds patience = kPatience);

  int descriptor() const noexcept;    // to wait for messages with poll, or to hand to a program that is started; stays the channel's
  int peer_process() const noexcept;  // a label: the process that made the other end
  void close() noexcept;

 private:
  friend class Listener;
  struct State;
  explicit Channel(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// Waits for others to connect, under a name of this user's. The name is in the kernel, per network name space, and goes with the listener.
class BERTH_EXPORT Listener {
 public:
  // Throws ArgumentError(invalid_name), AccessError(already_exists) when a process listens there already.
  explicit Listener(std::string_view name);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  // Throws DeviceError(timeout), AccessError(permission_denied) when another user has connected, who is turned away.
  Channel accept(std::chrono::milliseconds patience = Channel::kPatience);
  int descriptor() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth

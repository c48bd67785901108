// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "berth/share/channel.h"
#include "os/file/own_descriptor.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"
#include "os/process/socket.h"
#include "share/device_memory.h"
#include "share/segment.h"
#include "share/ticket_bytes.h"

// One end of a channel: its messages, and the segments whose tickets go through it. A peer is not trusted: what it
// sends is validated, and what it does not read is not waited for beyond the deadline of a call. One thread sends
// and one receives.
namespace berth::internal::share {

enum class MessageKind : std::uint16_t { storage = 1, bytes = 2, refused = 3, forget = 4 };

// In front of every message. The descriptor that comes with the first storage of a segment is the lease: an
// open file description of the segment that both ends keep. Descriptors of device memory come with each storage
// on it, and are closed when it is mapped.
struct MessageHead {
  static constexpr std::uint32_t kMagic = 0x3168'6362;  // "bch1"

  std::uint32_t magic = kMagic;
  MessageKind kind = MessageKind::bytes;
  std::uint8_t leases = 0;   // 1: the first descriptor is the lease
  std::uint8_t pieces = 0;   // descriptors of device memory that follow
  std::uint32_t length = 0;  // of what follows
  std::uint32_t lease = 0;   // its number
  std::uint64_t tag = 0;
};
static_assert(sizeof(MessageHead) == 24);
static_assert(device::cuda::PieceRun::kMostPieces + 1 <= os::kMostFiles && device::cuda::PieceRun::kMostPieces <= UINT8_MAX);

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

inline std::span<const std::byte> bytes_of(const MessageHead& head) noexcept { return std::as_bytes(std::span(&head, 1)); }

}  // namespace berth::internal::share

namespace berth {

struct Channel::State {
  using Segment = internal::share::Segment;

  internal::os::OwnDescriptor socket;
  const internal::os::Origin origin;
  int peer_process = 0;
  internal::share::CarriedMap received;  // used by the receiving thread only
  std::vector<std::byte> room = std::vector<std::byte>(sizeof(internal::share::MessageHead) + kMostBytes);
  std::deque<std::vector<std::byte>> refusals;  // that the peer has made no room for yet; used by the receiving thread only
  internal::os::Mutex mutex;
  internal::share::CarriedMap sent BERTH_GUARDED_BY(mutex);  // the sending thread adds and drops elements
  unsigned sends = 0;                                        // used by the sending thread only

  // Throws unless the channel is open, in this process.
  static State& opened(const std::unique_ptr<State>& state, const char* asked);

  // ---- Sending (share/channel_sending.cc)

  Result<std::shared_ptr<internal::share::Carried>> carried(const std::shared_ptr<Segment>& segment);
  // `memory` is what the ticket stands for, if that is device memory of this process.
  Status send_ticket(const internal::share::TicketContent& content, internal::share::Carried& carrier,
                     const internal::share::DeviceMemory* memory, std::uint64_t tag, std::uint64_t deadline_ns);
  void send(const internal::share::TicketContent& content, const std::shared_ptr<Segment>& segment,
            const internal::share::DeviceMemory* memory, std::uint64_t tag, std::uint64_t deadline_ns);
  void forget_idle() noexcept;  // does not allocate: the send has succeeded already
  void drop_sent() noexcept;

  // ---- Receiving (share/channel_receiving.cc)

  // Returns nullopt when the message was for the channel itself.
  Result<std::optional<Message>> receive_one(std::uint64_t deadline_ns);
  // Sends what is left of them, without waiting.
  void send_refusals() noexcept;

 private:
  Result<std::optional<Message>> take(const internal::share::MessageHead& head, std::span<const std::byte> body,
                                      internal::os::Packet& packet);
  Result<Storage> take_storage(const internal::share::MessageHead& head, std::span<const std::byte> body, internal::os::Packet& packet);
  static Result<Storage> import_or_revoke(const internal::share::TicketContent& content, const std::shared_ptr<Segment>& segment,
                                          std::span<internal::os::Descriptor> files);
  Result<std::shared_ptr<Segment>> segment_for(const internal::share::TicketContent& content, const internal::share::MessageHead& head,
                                               internal::os::Packet& packet);
  void refuse(std::span<const std::byte> ticket);
  void hear_refusal(std::span<const std::byte> ticket);
  void hear_to_forget(std::span<const std::byte> body) noexcept;
};

}  // namespace berth

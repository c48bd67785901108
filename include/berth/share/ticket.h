// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "berth/export.h"
#include "berth/storage/storage.h"

// Tickets: storages on their way to another process. A ticket is plain bytes (which segment, which slot of it, dtype, shape, strides, offset)
// and may travel in any way: a pipe, a queue, a file. It is good for one import:
//
//     Ticket t = export_ticket(x);          // from here on x may go: the ticket holds the bytes
//     pipe.write(t.bytes());
//     ...
//     Storage y = import_ticket(Ticket::from_bytes(received));      // in another process
//
// Only the descriptor of the segment cannot travel as bytes. A process that has none yet needs a Channel (share/channel.h), which sends it
// along the first time, or a descriptor that it got in another way.
//
// A ticket holds its bytes until it is imported, refused, or its exporter is dead. One that a Channel carries also outlives its exporter,
// until both ends of the channel are gone.
namespace berth {

namespace internal::share {
struct TicketMaker;
}

class BERTH_EXPORT Ticket {
 public:
  // Throws FormatError: format_error for what is not a whole ticket, version_mismatch for one of another version.
  static Ticket from_bytes(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  friend bool operator==(const Ticket&, const Ticket&) = default;

 private:
  friend struct internal::share::TicketMaker;
  std::vector<std::byte> bytes_;
};

// Throws AccessError(wrong_device) unless the storage lies in shared memory: `share` it first. Storages on CUDA are taken as they came from the
// pool (docs/sharing.md, "Devices"); memory that is in no pool is DeviceError(unsupported). Storages with a name travel by their name:
// DeviceError(unsupported). ArgumentError(limit_exceeded) when 16,384 storages of the process are shared, or that many tickets on their
// way, at once.
BERTH_EXPORT Ticket export_ticket(const Storage& storage);

// The storage, over the exporter's bytes. Throws AccessError: already_consumed when the ticket was imported or refused before, or its
// exporter died before it could be; not_found when this process has no descriptor of the segment. FormatError for a ticket that cannot be.
// ArgumentError(limit_exceeded) when 255 other processes hold the segment.
struct ImportOptions {
  bool read_only = false;  // mapped so that not even a stray pointer can write through this process
};
BERTH_EXPORT Storage import_ticket(const Ticket& ticket, const ImportOptions& options = {}, Site site = Site::here());

// The same with a descriptor of the segment, which stays the caller's. Throws AccessError(untrusted) when the file behind it could be cut
// while it is read, or is another's than the ticket's.
BERTH_EXPORT Storage import_ticket(const Ticket& ticket, int descriptor, const ImportOptions& options = {}, Site site = Site::here());

// Takes a ticket back, at either end; false when it was imported or refused before, or this process does not know the segment.
BERTH_EXPORT bool refuse_ticket(const Ticket& ticket);

}  // namespace berth

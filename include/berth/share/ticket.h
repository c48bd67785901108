// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/export.h"
#include "berth/storage/storage.h"

// Tickets: storages in flight to another process. A ticket is plain bytes (segment, entry, dtype, shape,
// strides, offset) and may travel through any medium: a pipe, a queue, a file. It is valid for one import:
//
//     Ticket t = export_ticket(x);          // x may be dropped: the ticket holds the bytes
//     pipe.write(t.bytes());
//     ...
//     Storage y = import_ticket(Ticket::from_bytes(received));      // in another process
//
// or for as many as its exporter says, by anyone who has a copy of its bytes:
//
//     Ticket weights = export_ticket(x, {.imports = 8});            // one for each worker
//     imports_left(weights);                                        // 8, and one less after each import
//     refuse_ticket(weights);                                       // nobody imports it any more
//
// Only the file descriptor of the segment cannot travel as bytes. A process that does not have it yet needs a
// Channel (share/channel.h), which passes it along the first time, or a descriptor that it got in another way.
//
// A ticket of a storage without bytes holds nothing, and may be imported any number of times. The bytes of a ticket
// are not trusted: whatever they are, an import returns elements of the segment that they name, at most as many as its
// file has memory for, or throws.
//
// A ticket holds its bytes until its last import, or it is refused, or its exporter dies. A storage sent through a
// Channel also outlives its sender, until both ends of the channel are closed. Any thread.
namespace berth {

namespace internal::share {
struct TicketMaker;
}

class BERTH_EXPORT Ticket {
 public:
  // Throws FormatError: format_error for anything but a whole ticket, version_mismatch for one of another
  // version.
  static Ticket from_bytes(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  friend bool operator==(const Ticket&, const Ticket&) = default;

 private:
  friend struct internal::share::TicketMaker;
  std::vector<std::byte> bytes_;
};

struct ExportOptions {
  static constexpr std::uint32_t kMostImports = 4096;
  // How many the ticket is good for. Each takes the place of a ticket, and 8 of its bytes; an import looks through those
  // that were used before it, which costs some 0.1 ms where there are thousands.
  std::uint32_t imports = 1;
};

// Throws AccessError(wrong_device) unless the storage is in shared memory: `share` it first. Storages on CUDA
// can be exported if they come from the pool (docs/sharing.md, "Devices"), else DeviceError(unsupported) is
// thrown; also for named storages, which are opened by their name. ArgumentError(limit_exceeded) when 16,384
// storages of the process are shared, or as many tickets in flight, at once, and for more than kMostImports;
// ArgumentError(invalid_argument) for none.
BERTH_EXPORT Ticket export_ticket(const Storage& storage, const ExportOptions& options = {});

// Returns a storage over the exporter's bytes. Throws AccessError: already_consumed when the ticket was
// imported as often as it may be, or refused, or its exporter was found dead first; not_found when this process has no
// descriptor of the segment. FormatError for an invalid ticket. ArgumentError(limit_exceeded) when 255 other processes
// hold the segment.
struct ImportOptions {
  bool read_only = false;  // map the bytes read-only: a stray write in this process faults
};
BERTH_EXPORT Storage import_ticket(const Ticket& ticket, const ImportOptions& options = {}, Site site = Site::here());

// The same with a descriptor of the segment, which the caller keeps. Throws AccessError(untrusted) when the
// file behind it could be truncated while it is read, or is not the ticket's segment.
BERTH_EXPORT Storage import_ticket(const Ticket& ticket, int descriptor, const ImportOptions& options = {}, Site site = Site::here());

// Revokes what is left of a ticket, from either end: of one for several imports, for every other process too. What was
// imported stays. Returns false when nothing was left, or this process does not know the segment. A ticket of a storage
// without bytes has nothing to revoke: true.
BERTH_EXPORT bool refuse_ticket(const Ticket& ticket);

// How many imports are left; other processes may use them up concurrently, or find the exporter dead, which ends them.
// SIZE_MAX for a ticket of a storage without bytes. Throws AccessError(not_found) when this process does not know the
// segment.
BERTH_EXPORT std::size_t imports_left(const Ticket& ticket);

}  // namespace berth

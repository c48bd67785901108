// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "berth/base/result.h"
#include "berth/memory/allocator.h"
#include "device/shared/shared_range.h"
#include "os/file/own_descriptor.h"
#include "os/file/shared_file.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"
#include "share/claims.h"
#include "share/segment_header.h"
#include "share/words.h"

// A segment as one process sees it: the file, its words, the process's own row in it, and the claims that the
// process holds.
//
// The *owner* is the process whose pool allocates from the segment: it has row 0. Every other process that
// attaches takes a row of its own. A process owns a row for as long as it holds the row's file lock, which the
// kernel releases when the process dies.
//
// Several handles of one process on one entry are counted here, in private memory; other processes see one
// claim. A block that the owner has released while another process still holds it *lingers*: `tidy` returns it
// to its allocator once the last claim is gone. In a forked child an inherited segment is dead: its operations
// have no effect. Any thread.
namespace berth::internal::share {

// What a ticket that travels names: the ticket, and the entry it is a claim on.
struct TicketName {
  std::uint32_t ticket = 0;
  std::uint32_t generation = 0;
  std::uint32_t entry = 0;
  std::uint64_t entry_generation = 0;

  friend bool operator==(const TicketName&, const TicketName&) = default;
};

struct EntryBytes {
  std::uint32_t entry = 0;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
};

// A block to return to its allocator once no other process has a claim on it.
struct HeldBlock {
  Block block = {};
  Allocator* allocator = nullptr;
  std::shared_ptr<Allocator> kept_alive = {};
  std::shared_ptr<const void> companion = {};  // what it stands for, released with it: device memory

  void give_back() noexcept {
    if (allocator != nullptr) allocator->deallocate(block);
    companion.reset();
  }
};

class Segment {
 public:
  // Makes a range of this process a segment: writes the header and takes row 0. `busy` when another thread is
  // doing that.
  static Result<std::shared_ptr<Segment>> make_own(const device::SharedPosition& position);
  // Attaches to another process's segment, by a descriptor that the caller keeps. `untrusted` unless the file
  // is sealed against truncation.
  static Result<std::shared_ptr<Segment>> attach(int descriptor);
  // The segment with that id that this process already knows, own or attached; or null.
  static std::shared_ptr<Segment> find(const SegmentId& id);
  // Reaps, and frees lingering blocks, in every segment that this process knows. True: a block was freed.
  static bool reap_all() noexcept;

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const SegmentId& id() const noexcept { return id_; }
  bool is_own() const noexcept { return row_ == kOwnerRow; }
  bool is_inherited() const noexcept { return origin_.is_inherited(); }
  int descriptor() const noexcept { return lock_.number(); }

  // ---- The claims of this process. publish, keep and import each add one handle, which drop_handle drops.

  // REQUIRES: is_own(), and the caller owns the bytes.
  Result<std::uint32_t> publish(std::uint64_t offset, std::uint64_t bytes);
  void keep(std::uint32_t entry) noexcept;  // REQUIRES: the entry has a handle
  Result<EntryBytes> import(const TicketName& name);
  void drop_handle(std::uint32_t entry) noexcept;
  // The same, for the owner's buffer: the block is freed when there is no claim on it.
  void drop_handle(std::uint32_t entry, HeldBlock block) noexcept;

  // What the owner keeps with the block that a ticket names, if it has released the block and the ticket is not
  // consumed; or null.
  std::shared_ptr<const void> companion_of(const TicketName& name) const noexcept;

  // What an import would return. Others may change it concurrently.
  Result<EntryBytes> look(const TicketName& name) const noexcept;

  // REQUIRES: this process has a handle on the entry.
  Result<TicketName> make_ticket(std::uint32_t entry, HolderId holder) noexcept;
  // Lives as long as this process.
  Result<TicketName> make_ticket(std::uint32_t entry) noexcept { return make_ticket(entry, row_); }
  // The same, for one of several: the search for a free one goes on after `earlier`, the one made before.
  Result<TicketName> make_next_ticket(std::uint32_t entry, std::uint32_t earlier) noexcept;
  bool is_held(const TicketName& name) const noexcept;  // not imported or revoked yet. Others may do so concurrently
  // False: the ticket is gone.
  bool revoke(const TicketName& name) noexcept;

  // The address of the bytes in this process. The mapping lives as long as the segment.
  Result<void*> address_of(std::uint64_t offset, std::uint64_t bytes, os::Access access);

  // Takes a lease: a lock on an open file description that both ends of a channel hold.
  Result<HolderId> take_lease(int description);
  // REQUIRES: this end has closed its description. Once the other end has too, tickets in flight are dropped.
  void end_lease(HolderId lease) noexcept;

  // Drops the claims of dead rows and leases. After the deadline the rest of them is left for the next time.
  static constexpr std::uint64_t kNoDeadline = UINT64_MAX;
  void reap(std::uint64_t deadline_ns = kNoDeadline) noexcept;
  // Reaps, at most every 10 ms, and frees lingering blocks without claims.
  void tidy() noexcept;

  bool has_handles() const noexcept;  // of this process

 private:
  struct Local {
    std::uint32_t handles = 0;
    HeldBlock block = {};
  };
  using Entries = std::map<std::uint32_t, Local>;
  struct Window {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    os::Access access = os::Access::read;
    void* data = nullptr;
  };

  Segment() = default;
  Status open(int descriptor);
  Result<std::shared_ptr<Segment>> same_or_refused(std::shared_ptr<Segment> known) const;
  Status has_memory_for(std::uint64_t bytes) const noexcept;
  Status take_row();
  void try_reap(HolderId holder) noexcept;
  void reap_briefly() noexcept;
  bool drop_claims(HolderId holder) noexcept;
  bool drop_claims_if_dead(HolderId holder) noexcept;
  void reap_holder(HolderId holder) noexcept;
  void drop_pages_around(std::uint64_t begin, std::uint64_t end) noexcept;
  void drop_unclaimed_pages() noexcept;
  bool retire_lingering() noexcept;  // true: there was some
  Entries::node_type take_retired(std::uint32_t from) noexcept;
  std::uint32_t entries_used() const noexcept;
  bool knows(const TicketName& name) const noexcept;
  void add_to_known();
  Result<TicketName> make_ticket_from(std::uint32_t first, std::uint32_t entry, HolderId holder) noexcept BERTH_REQUIRES(mutex_);

  SegmentId id_;
  os::OwnDescriptor lock_;  // an open file description of this process alone: it holds the row's lock
  SegmentHeader header_;    // a validated copy
  Layout layout_;
  void* control_ = nullptr;
  Words words_;
  std::byte* base_ = nullptr;  // the owner's own mapping of the bytes
  std::uint32_t row_ = kNoHolder;
  const os::Origin origin_;
  std::weak_ptr<Segment> self_;
  mutable std::atomic<std::uint64_t> backed_bytes_{0};  // of the file, when it was last asked

  os::Mutex reaping_;  // held while reaping: file locks exclude processes, but not the threads of one
  mutable os::Mutex mutex_;
  Entries held_ BERTH_GUARDED_BY(mutex_);  // entries with a claim of this process: handles > 0
  // The owner's entries without a claim of its own: handles == 0. An entry is in at most one of the two maps.
  Entries lingering_ BERTH_GUARDED_BY(mutex_);
  // The owner's: free entries below next_entry_.
  std::vector<std::uint32_t> free_entries_ BERTH_GUARDED_BY(mutex_);
  std::uint32_t next_entry_ BERTH_GUARDED_BY(mutex_) = 0;   // the owner's: the first never used
  std::uint32_t last_ticket_ BERTH_GUARDED_BY(mutex_) = 0;  // the last made here
  std::vector<Window> windows_ BERTH_GUARDED_BY(mutex_);
  Word releases_seen_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t reaped_ns_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth::internal::share

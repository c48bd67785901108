// SPDX-License-Identifier: Apache-2.0
#pragma once

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
#include "share/claims.h"
#include "share/segment_header.h"
#include "share/words.h"

// A segment as one process sees it: the file, its words, the process's own row in it, and what of it the process holds.
//
// The *owner* is the process whose pool gives out the segment's memory: it has row 0. Every other process that attaches takes a row of its
// own. A row is the process's for as long as it has the lock of that row, which the kernel takes away with the process.
//
// Several handles of one process on one slot are counted here, in private memory; other processes see one claim. A block of the owner's that
// it has let go and another process still holds *lingers*: it goes back to its allocator when the last claim is gone, which is looked at
// in `tidy`. In a forked child an inherited segment is dead: nothing it does has an effect. Any thread.
namespace berth::internal::share {

// A ticket as it travels: which claim, on what.
struct TicketName {
  std::uint32_t ticket = 0;
  std::uint32_t generation = 0;
  std::uint32_t slot = 0;
  std::uint64_t slot_generation = 0;
};

struct SlotBytes {
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
};

// A block on its way back to its allocator, when the other processes are done with it.
struct HeldBlock {
  Block block = {};
  Allocator* allocator = nullptr;
  std::shared_ptr<Allocator> kept_alive = {};
  std::shared_ptr<const void> companion = {};  // what it stands for, and goes with it: memory of a device

  void give_back() noexcept {
    if (allocator != nullptr) allocator->deallocate(block);
    companion.reset();
  }
};

class Segment {
 public:
  // Of a range of this process, which becomes known to others: writes the header and takes row 0. `busy` when another thread is at it.
  static Result<std::shared_ptr<Segment>> make_own(const device::SharedPlace& place);
  // Of another process, by a descriptor that came from it, which stays the caller's. `untrusted` unless nobody can cut the file.
  static Result<std::shared_ptr<Segment>> attach(int descriptor);
  // The one that is known already under that name, own or attached; or null.
  static std::shared_ptr<Segment> find(const SegmentId& id);
  // Reaps, and gives back what lingers, in every segment that this process knows. True: there was some.
  static bool reap_all() noexcept;

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const SegmentId& id() const noexcept { return id_; }
  bool is_own() const noexcept { return row_ == 0; }
  bool is_inherited() const noexcept;
  int descriptor() const noexcept { return lock_.number(); }

  // ---- The claims of this process. Each call that gives one counts one handle more, to be ended with let_go.

  // REQUIRES: is_own(), and the bytes are the caller's.
  Result<std::uint32_t> publish(std::uint64_t offset, std::uint64_t bytes);
  void keep(std::uint32_t slot) noexcept;  // REQUIRES: a handle is there
  Result<SlotBytes> import(const TicketName& name);
  void let_go(std::uint32_t slot) noexcept;
  // The same, by the owner's buffer: the block goes back when nobody has a claim on it.
  void let_go(std::uint32_t slot, HeldBlock block) noexcept;

  // What the owner keeps with the block that a ticket leads to, if it has let go of the block and the ticket is not used up; or null.
  std::shared_ptr<const void> companion_of(const TicketName& name) const noexcept;

  // What an import would give; a look at what others may change.
  Result<SlotBytes> look(const TicketName& name) const noexcept;

  // REQUIRES: this process has a handle on the slot.
  Result<TicketName> make_ticket(std::uint32_t slot, HolderId holder) noexcept;
  Result<TicketName> make_ticket(std::uint32_t slot) noexcept { return make_ticket(slot, row_); }  // lives as long as this process
  bool revoke(const TicketName& name) noexcept;                                                    // false: it is not there any more

  // Where the bytes are in this process. The mapping stays as long as the segment.
  Result<void*> address_of(std::uint64_t offset, std::uint64_t bytes, os::Access access);

  // A lease: a lock through a description that both ends of a channel have.
  Result<HolderId> take_lease(int description);
  // REQUIRES: this end has closed its description. When the other has too, what was on its way is dropped.
  void end_lease(HolderId lease) noexcept;

  // Drops the claims of all that are dead; gives blocks that linger back when nobody holds them any more.
  void reap() noexcept;
  void tidy() noexcept;  // the same where there is reason to, and not too often

  bool has_handles() const noexcept;  // of this process

 private:
  struct Local {
    std::uint32_t handles = 0;
    HeldBlock block = {};
  };
  using Slots = std::map<std::uint32_t, Local>;
  struct Window {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    os::Access access = os::Access::read;
    void* data = nullptr;
  };

  Segment() = default;
  Status open(int descriptor);
  Status take_row();
  void try_reap(HolderId holder) noexcept;
  void reap_holder(HolderId holder) noexcept;
  void drop_pages_around(std::uint64_t begin, std::uint64_t end) noexcept;
  void drop_unclaimed_pages() noexcept;
  bool retire_lingering() noexcept;  // true: there was some
  Slots::node_type take_retired(std::uint32_t from) noexcept;
  std::uint32_t slots_used() const noexcept;
  bool knows(const TicketName& name) const noexcept;
  void add_to_known();

  SegmentId id_;
  os::OwnDescriptor lock_;  // a description of this process alone: it has the lock of the row
  SegmentHeader header_;    // a copy, checked
  Layout layout_;
  void* control_ = nullptr;
  Words words_;
  std::byte* base_ = nullptr;  // the owner's own mapping of the bytes
  std::uint32_t row_ = kNoHolder;
  std::uint64_t generation_ = 0;  // of the process
  std::weak_ptr<Segment> self_;

  os::Mutex reaping_;  // while a holder is judged: the kernel's locks keep processes apart, and not the threads of one
  mutable os::Mutex mutex_;
  Slots held_ BERTH_GUARDED_BY(mutex_);       // what this process has a claim on: handles > 0 in each
  Slots lingering_ BERTH_GUARDED_BY(mutex_);  // the owner's that it has none on: handles == 0. In one of the two at most
  std::vector<std::uint32_t> free_slots_ BERTH_GUARDED_BY(mutex_);  // the owner's: free, below the first that was never used
  std::uint32_t next_slot_ BERTH_GUARDED_BY(mutex_) = 0;            // the owner's: the first that was never used
  std::uint32_t last_ticket_ BERTH_GUARDED_BY(mutex_) = 0;          // that was made here
  std::vector<Window> windows_ BERTH_GUARDED_BY(mutex_);
  Word releases_seen_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t reaped_ns_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth::internal::share

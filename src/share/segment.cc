// SPDX-License-Identifier: Apache-2.0
#include "share/segment.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "berth/base/checked.h"
#include "memory/refusal_hook.h"
#include "os/clock.h"
#include "os/memory/memory.h"
#include "os/system.h"

namespace berth::internal::share {

namespace {

constexpr Layout kOwnLayout{.entries = 16384, .tickets = 16384, .masks = 4};
static_assert(control_bytes(kOwnLayout) <= device::kSharedDataOffset);

constexpr Failure kInherited{ErrorCode::fork_unsafe, 0, "the segment belongs to the process that forked"};

// Every segment that this process knows. Never destroyed.
struct Known {
  os::Mutex mutex;
  std::map<SegmentId, std::weak_ptr<Segment>> segments BERTH_GUARDED_BY(mutex);
};

Known& known() {
  static auto* const made = new Known;
  return *made;
}
[[maybe_unused]] const Known& g_known_segments_at_load = known();

// How long the tables are bounds how long a peer can make this process reap.
bool is_within(const Layout& layout, const Layout& most) noexcept {
  return layout.entries <= most.entries && layout.tickets <= most.tickets && layout.masks <= most.masks;
}

SegmentHeader* header_at(void* control) noexcept { return static_cast<SegmentHeader*>(control); }

// The magic is published last: it says that the rest is complete.
void write_header(void* control, const SegmentHeader& header) noexcept {
  SegmentHeader unfinished = header;
  unfinished.magic = 0;
  std::memcpy(control, &unfinished, sizeof unfinished);
  // release: a process that sees the magic sees the whole header.
  std::atomic_ref<std::uint64_t>(header_at(control)->magic).store(header.magic, std::memory_order_release);
}

SegmentHeader read_header(void* control) noexcept {
  SegmentHeader copy;
  // acquire: pairs with the release of the magic.
  const std::uint64_t magic = std::atomic_ref<std::uint64_t>(header_at(control)->magic).load(std::memory_order_acquire);
  std::memcpy(static_cast<void*>(&copy), control, sizeof copy);
  copy.magic = magic;
  return copy;
}

}  // namespace

// Opens a file description of its own and maps the words. Does not read the header.
Status Segment::open(int descriptor) {
  Result<os::Descriptor> again = os::open_again(descriptor);
  if (!again) return again.failure();
  lock_.set(std::move(*again));
  const Result<void*> mapped = os::map_file_range(lock_.number(), 0, device::kSharedDataOffset, os::Access::write);
  if (!mapped) return mapped.failure();
  control_ = *mapped;
  words_ = Words(static_cast<std::byte*>(control_) + kWordsOffset);
  return {};
}

Result<std::shared_ptr<Segment>> Segment::make_own(const device::SharedPosition& position) {
  const std::shared_ptr<Segment> made(new Segment);
  if (const Status opened = made->open(position.descriptor); !opened) return opened.failure();
  const Result<bool> locked = os::try_lock_byte(made->lock_.number(), lock_of(kOwnerRow));
  if (!locked) return locked.failure();
  if (!*locked) return Failure{ErrorCode::busy, 0, "another thread is creating the segment"};
  const std::uint64_t control = *try_align_up(control_bytes(kOwnLayout), os::page_bytes());
  if (const Status given = os::allocate_range(position.descriptor, 0, control); !given) return given.failure();
  const Result<SegmentHeader> header = make_header(kOwnLayout, position.file_bytes, device::kSharedDataOffset);
  if (!header) return header.failure();
  made->header_ = *header;
  made->id_ = made->header_.id;
  made->layout_ = made->header_.layout;
  made->base_ = position.base;
  made->row_ = kOwnerRow;
  raise_to(made->words_, Layout::kRowsUsed, kOwnerRow + 1);
  made->words_.store(made->layout_.row_label(kOwnerRow), static_cast<Word>(os::process_id()));
  write_header(made->control_, made->header_);
  made->self_ = made;
  made->add_to_known();
  // When an allocation fails, lingering blocks may make room.
  memory::g_reclaim_hook.store(reap_all, std::memory_order_release);
  return made;
}

Result<std::shared_ptr<Segment>> Segment::attach(int descriptor) {
  const Result<os::FileFacts> facts = os::facts_of(descriptor);
  if (!facts) return facts.failure();
  if (!facts->is_regular || !facts->never_shrinks)
    return Failure{ErrorCode::untrusted, 0, "the file is not sealed against truncation (F_SEAL_SHRINK)"};
  if (facts->is_never_written)
    return Failure{ErrorCode::untrusted, 0, "the file is sealed against writing, so that no claim can be made in it"};
  if (facts->bytes <= device::kSharedDataOffset) return Failure{ErrorCode::format_error, 0, "the file is too short for a segment"};
  const std::shared_ptr<Segment> made(new Segment);
  if (const Status opened = made->open(descriptor); !opened) return opened.failure();
  made->header_ = read_header(made->control_);
  if (const Status good = check_header(made->header_, facts->bytes); !good) return good.failure();
  if (made->header_.data_offset != device::kSharedDataOffset)
    return Failure{ErrorCode::format_error, 0, "the segment's data offset is invalid"};
  if (!is_within(made->header_.layout, kOwnLayout))
    return Failure{ErrorCode::format_error, 0, "the segment's tables are larger than berth makes them"};
  made->id_ = made->header_.id;
  made->layout_ = made->header_.layout;
  if (std::shared_ptr<Segment> there = find(made->id_)) return made->same_or_refused(std::move(there));
  if (const Status taken = made->take_row(); !taken) return taken.failure();
  made->self_ = made;
  made->add_to_known();
  made->reap_briefly();
  return made;
}

// A segment of that id is known. A peer may have copied the id of another's, to be taken for it.
Result<std::shared_ptr<Segment>> Segment::same_or_refused(std::shared_ptr<Segment> known) const {
  const Result<os::FileFacts> here = os::facts_of(descriptor());
  if (!here) return here.failure();
  const Result<os::FileFacts> there = os::facts_of(known->descriptor());
  if (!there) return there.failure();
  if (!here->same_file(*there)) return Failure{ErrorCode::untrusted, 0, "the file has the id of another segment"};
  return known;
}

std::shared_ptr<Segment> Segment::find(const SegmentId& id) {
  Known& all = known();
  const os::Lock lock(all.mutex);
  const auto found = all.segments.find(id);
  if (found == all.segments.end()) return nullptr;
  std::shared_ptr<Segment> segment = found->second.lock();
  return segment != nullptr && !segment->is_inherited() ? segment : nullptr;
}

bool Segment::reap_all() noexcept {
  Known& all = known();
  bool any = false;
  std::shared_ptr<Segment> segment;
  for (SegmentId after{};; after = segment->id()) {
    std::shared_ptr<Segment> next;
    {
      const os::Lock lock(all.mutex);
      auto at = segment == nullptr ? all.segments.begin() : all.segments.upper_bound(after);
      while (at != all.segments.end() && (next = at->second.lock()) == nullptr) ++at;
    }
    segment = std::move(next);  // releases the previous one, without the lock
    if (segment == nullptr) return any;
    segment->reap();
    if (segment->is_own() && !segment->is_inherited() && segment->retire_lingering()) any = true;
  }
}

void Segment::add_to_known() {
  std::map<SegmentId, std::weak_ptr<Segment>> fresh;
  fresh.try_emplace(id_, self_);
  Known& all = known();
  const os::Lock lock(all.mutex);
  const auto there = all.segments.find(id_);
  if (there == all.segments.end())
    all.segments.insert(fresh.extract(fresh.begin()));
  else
    there->second.swap(fresh.begin()->second);  // of a fork's parent, or of a thread that attached concurrently
}

// Takes the first row whose lock is free, after dropping the claims that a dead process left in it.
Status Segment::take_row() {
  for (std::uint32_t row = kOwnerRow + 1; row < layout_.rows(); ++row) {
    const Result<bool> locked = os::try_lock_byte(lock_.number(), lock_of(row));
    if (!locked) return locked.failure();
    if (!*locked) continue;
    row_ = row;
    reap_holder(row);
    raise_to(words_, Layout::kRowsUsed, row + 1);  // a reaper looks at these rows, and at the label
    words_.store(layout_.row_label(row), static_cast<Word>(os::process_id()));
    return {};
  }
  return Failure{ErrorCode::limit_exceeded, 0, "every row is taken: too many processes hold the segment"};
}

// The process has no claims any more: its handles have dropped them. Closing the descriptor releases the row's
// lock.
Segment::~Segment() {
  if (!is_inherited() && row_ != kNoHolder) words_.store(layout_.row_label(row_), kVacant);
  for (const Window& window : windows_) os::unmap(window.data, window.bytes);
  if (control_ != nullptr) os::unmap(control_, device::kSharedDataOffset);
  Known& all = known();
  decltype(all.segments)::node_type node;  // destroyed after unlocking
  const os::Lock lock(all.mutex);
  const auto there = all.segments.find(id_);
  if (there != all.segments.end() && there->second.expired()) node = all.segments.extract(there);
}

Result<std::uint32_t> Segment::publish(std::uint64_t offset, std::uint64_t bytes) {
  if (is_inherited()) return kInherited;
  tidy();
  Entries fresh;
  fresh.try_emplace(0, Local{.handles = 1});
  auto node = fresh.extract(fresh.begin());
  const os::Lock lock(mutex_);
  std::uint32_t entry = next_entry_;
  if (!free_entries_.empty()) {
    entry = free_entries_.back();
    free_entries_.pop_back();
  } else if (next_entry_ < layout_.entries) {
    free_entries_.reserve(next_entry_ + 1);  // so that freeing it does not allocate
    ++next_entry_;
  } else {
    return Failure{ErrorCode::limit_exceeded, 0, "every entry is taken: too many storages are shared at once"};
  }
  run(Publish{.entry = entry, .offset = offset, .bytes = bytes}, words_, layout_);
  node.key() = entry;
  held_.insert(std::move(node));
  return entry;
}

void Segment::keep(std::uint32_t entry) noexcept {
  const os::Lock lock(mutex_);
  const auto there = held_.find(entry);
  if (there != held_.end()) ++there->second.handles;
}

bool Segment::knows(const TicketName& name) const noexcept {
  return name.ticket < layout_.tickets && name.entry < layout_.entries && name.generation < TicketWord::kGenerations;
}

Result<EntryBytes> Segment::look(const TicketName& name) const noexcept {
  if (!knows(name)) return Failure{ErrorCode::format_error, 0, "the ticket names an entry that the segment does not have"};
  if (words_.load(layout_.entry(name.entry)) != live_entry(name.entry_generation))
    return Failure{ErrorCode::already_consumed, 0, "the storage that the ticket names is gone"};
  const EntryBytes found{name.entry, words_.load(layout_.offset(name.entry)), words_.load(layout_.bytes(name.entry))};
  const bool inside = found.offset >= header_.data_offset && found.bytes > 0 && fits(found.offset, found.bytes, header_.file_bytes);
  if (!inside) return Failure{ErrorCode::format_error, 0, "the entry's storage lies outside the segment"};
  if (const Status backed = has_memory_for(found.bytes); !backed) return backed.failure();
  return found;
}

// Reading a page of the file that has no memory allocates it, and the reader pays. So a storage is no longer than what
// the file has memory for; berth allocates before it shares.
Status Segment::has_memory_for(std::uint64_t bytes) const noexcept {
  // Relaxed: a number that was true when it was seen. The file is asked only for more than was ever seen.
  if (base_ != nullptr || bytes <= backed_bytes_.load(std::memory_order_relaxed)) return {};
  const Result<os::FileFacts> facts = os::facts_of(lock_.number());
  if (!facts) return facts.failure();
  backed_bytes_.store(facts->used_bytes, std::memory_order_relaxed);
  return bytes <= facts->used_bytes ? Status()
                                    : Failure{ErrorCode::untrusted, 0, "the entry's storage is longer than its segment has memory for"};
}

std::shared_ptr<const void> Segment::companion_of(const TicketName& name) const noexcept {
  if (!knows(name)) return nullptr;
  const os::Lock lock(mutex_);
  if (words_.load(layout_.entry(name.entry)) != live_entry(name.entry_generation)) return nullptr;
  for (const Entries* const entries : {&lingering_, &held_}) {
    if (const auto there = entries->find(name.entry); there != entries->end()) return there->second.block.companion;
  }
  return nullptr;
}

Result<EntryBytes> Segment::import(const TicketName& name) {
  if (is_inherited()) return kInherited;
  const Result<EntryBytes> found = look(name);
  if (!found) return found;
  Entries fresh;
  fresh.try_emplace(name.entry);
  auto node = fresh.extract(fresh.begin());
  const os::Lock lock(mutex_);
  const Import import = run(
      Import{.ticket = name.ticket, .generation = name.generation, .entry = name.entry, .entry_gen = name.entry_generation, .row = row_},
      words_, layout_);
  if (import.outcome != Outcome::done)
    return Failure{ErrorCode::already_consumed, 0, "the ticket was imported or refused before, or its sender is dead"};
  // The owner imports its own block.
  if (auto back = lingering_.extract(name.entry); !back.empty()) node.mapped().block = std::move(back.mapped().block);
  ++held_.insert(std::move(node)).position->second.handles;
  return found;
}

void Segment::drop_handle(std::uint32_t entry) noexcept { drop_handle(entry, {}); }

void Segment::drop_handle(std::uint32_t entry, HeldBlock block) noexcept {
  if (is_inherited()) return;
  Entries::node_type node;  // destroyed after unlocking
  bool freed = false;
  {
    const os::Lock lock(mutex_);
    const auto there = held_.find(entry);
    if (there == held_.end()) return;
    if (block.allocator != nullptr) there->second.block = std::move(block);
    if (--there->second.handles > 0) return;
    node = held_.extract(there);
    Release release;
    release.entry = entry;
    release.row = row_;
    freed = run(release, words_, layout_).retired;
    if (is_own() && run(Retire{.entry = entry}, words_, layout_).outcome == Outcome::done)
      free_entries_.push_back(entry);
    else if (is_own())
      lingering_.insert(std::move(node));
  }
  if (!node.empty()) node.mapped().block.give_back();
  if (freed) drop_pages_around(words_.load(layout_.offset(entry)), words_.load(layout_.bytes(entry)));
  tidy();
}

Result<TicketName> Segment::make_ticket(std::uint32_t entry, HolderId holder) noexcept {
  if (is_inherited()) return kInherited;
  const os::Lock lock(mutex_);
  // The search begins at half of the last index: this reuses low tickets, because retiring an entry scans all
  // tickets that were ever used.
  return make_ticket_from(last_ticket_ / 2, entry, holder);
}

Result<TicketName> Segment::make_next_ticket(std::uint32_t entry, std::uint32_t earlier) noexcept {
  if (is_inherited()) return kInherited;
  const os::Lock lock(mutex_);
  return make_ticket_from((earlier + 1) % layout_.tickets, entry, row_);
}

Result<TicketName> Segment::make_ticket_from(std::uint32_t first, std::uint32_t entry, HolderId holder) noexcept {
  const Word state = words_.load(layout_.entry(entry));
  const Export made = run(Export{.entry = entry, .holder = holder, .ticket = first}, words_, layout_);
  if (made.outcome != Outcome::done) return Failure{ErrorCode::limit_exceeded, 0, "every ticket is taken: too many are in flight at once"};
  last_ticket_ = made.ticket;
  return TicketName{made.ticket, made.generation, entry, entry_generation(state)};
}

namespace {

bool holds(const TicketWord& there, const TicketName& name) noexcept {
  return there.state == TicketState::held && there.generation == name.generation && there.entry == name.entry;
}

}  // namespace

bool Segment::is_held(const TicketName& name) const noexcept {
  return knows(name) && holds(TicketWord::of(words_.load(layout_.ticket(name.ticket))), name);
}

bool Segment::revoke(const TicketName& name) noexcept {
  if (is_inherited() || !knows(name)) return false;
  const Word word = words_.load(layout_.ticket(name.ticket));
  if (!holds(TicketWord::of(word), name)) return false;
  Revoke revoke;
  revoke.ticket = name.ticket;
  revoke.expected = word;
  revoke = run(revoke, words_, layout_);
  if (revoke.outcome != Outcome::done) return false;
  if (revoke.retired) drop_pages_around(words_.load(layout_.offset(name.entry)), words_.load(layout_.bytes(name.entry)));
  return true;
}

Result<void*> Segment::address_of(std::uint64_t offset, std::uint64_t bytes, os::Access access) {
  if (base_ != nullptr) return static_cast<void*>(base_ + (offset - header_.data_offset));
  constexpr std::uint64_t kStep = std::uint64_t{64} << 20;  // so that neighbours are in one mapping
  const std::uint64_t begin = align_down(offset, kStep);
  const std::uint64_t end = std::min(*try_align_up(offset + bytes, kStep), *try_align_up(header_.file_bytes, os::page_bytes()));
  const auto covers = [&](const Window& window) {
    return window.access == access && fits(offset - std::min(offset, window.offset), bytes, window.bytes) && window.offset <= offset;
  };
  const auto find = [&]() BERTH_REQUIRES(mutex_) -> std::byte* {
    const auto found = std::ranges::find_if(windows_, covers);
    return found == windows_.end() ? nullptr : static_cast<std::byte*>(found->data) + (offset - found->offset);
  };
  {
    const os::Lock lock(mutex_);
    if (std::byte* const at = find()) return static_cast<void*>(at);
    windows_.reserve(windows_.size() + 1);
  }
  const Result<void*> mapped = os::map_file_range(lock_.number(), begin, end - begin, access);
  if (!mapped) return mapped;
  {
    const os::Lock lock(mutex_);
    if (windows_.capacity() > windows_.size()) windows_.push_back({begin, end - begin, access, *mapped});
    if (std::byte* const at = find()) return static_cast<void*>(at);
  }
  os::unmap(*mapped, end - begin);
  return Failure{ErrorCode::out_of_memory, 0, "no heap for the table of mappings"};
}

Result<HolderId> Segment::take_lease(int description) {
  if (is_inherited()) return kInherited;
  for (std::uint32_t i = 0; i < kMostLeases; ++i) {
    const HolderId lease = kFirstLease + i;
    const Result<bool> locked = os::try_lock_byte(description, lock_of(lease));
    if (!locked) return locked.failure();
    if (!*locked) continue;
    reap_holder(lease);  // tickets in flight when both ends of an earlier channel died
    return lease;
  }
  return Failure{ErrorCode::limit_exceeded, 0, "every lease is taken: too many channels carry tickets of the segment"};
}

void Segment::end_lease(HolderId lease) noexcept {
  if (is_inherited()) return;
  try_reap(lease);
  tidy();
}

bool Segment::has_handles() const noexcept {
  const os::Lock lock(mutex_);
  return !held_.empty();
}

}  // namespace berth::internal::share

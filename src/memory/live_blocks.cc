// SPDX-License-Identifier: Apache-2.0
#include "memory/live_blocks.h"

#include <algorithm>
#include <new>

#include "base/text.h"
#include "os/system.h"

namespace berth::internal::memory {

namespace {

struct Books {
  os::Mutex mutex;
  std::vector<std::weak_ptr<BlockBook>> all BERTH_GUARDED_BY(mutex);
};

// Never destroyed.
Books& books() {
  static auto* const made = new Books;
  return *made;
}
[[maybe_unused]] const Books& g_books_at_load = books();

std::vector<std::shared_ptr<BlockBook>> open_books() {
  std::vector<std::shared_ptr<BlockBook>> open;
  Books& known = books();
  const os::Lock lock(known.mutex);
  open.reserve(known.all.size());
  for (const auto& one : known.all) {
    if (auto book = one.lock()) open.push_back(std::move(book));
  }
  return open;
}

}  // namespace

void BlockBook::on_record(const Record& record) noexcept {
  if (record.kind == RecordKind::freed) return remove(record);
  if (record.kind != RecordKind::allocated) return;
  try {
    add(record);
  } catch (const std::bad_alloc&) {
    dropped_.add(1);
  }
}

void BlockBook::add(const Record& record) {
  const BlockNote note{.allocator_id = record.allocator_id,
                       .serial = record.serial,
                       .address = reinterpret_cast<std::uintptr_t>(record.address),
                       .bytes = record.bytes,
                       .device = record.device,
                       .tag = record.tag,
                       .site = record.site,
                       .stack = capture_stack(stack_depth_),
                       .since_ns = record.time_ns};
  const Key key{record.allocator_id, record.serial};
  Shard& shard = shard_of(key);
  {
    const os::Lock lock(shard.mutex);
    shard.notes.emplace(key, note);
  }
  added(note);
}

void BlockBook::remove(const Record& record) noexcept {
  const Key key{record.allocator_id, record.serial};
  Shard& shard = shard_of(key);
  BlockNote note;
  {
    const os::Lock lock(shard.mutex);
    const auto found = shard.notes.find(key);
    if (found == shard.notes.end()) return;  // older than the book
    note = found->second;
    shard.notes.erase(found);
  }
  removed(note);
}

std::vector<BlockNote> BlockBook::notes() const {
  std::vector<BlockNote> all;
  for (const Shard& shard : shards_) {
    const os::Lock lock(shard.mutex);
    all.reserve(all.size() + shard.notes.size());
    for (const auto& [key, note] : shard.notes) all.push_back(note);
  }
  const std::uint64_t now = os::steady_time_ns();
  for (BlockNote& note : all) note.age_ns = std::max<std::uint64_t>(now - std::min(now, note.since_ns), 1);
  return all;
}

void enter_book(const std::shared_ptr<BlockBook>& book) {
  Books& known = books();
  const os::Lock lock(known.mutex);
  std::erase_if(known.all, [](const auto& one) { return one.expired(); });
  known.all.push_back(book);
}

LiveBlocks live_blocks(DeviceKey device) {
  LiveBlocks found;
  for (const std::shared_ptr<BlockBook>& book : open_books()) {
    for (const BlockNote& note : book->notes()) {
      if (note.device != device) continue;
      BlockNote& known = found[note.address];
      if (known.since_ns < note.since_ns || known.address == 0)
        known = note;  // the youngest: the free of an older one may not be recorded yet
    }
  }
  return found;
}

std::string site_in_words(SiteId site, StackId stack) {
  const std::string at = site == SiteId{} ? std::string() : to_string(site);
  const std::string from = to_string(stack);
  return at.empty() || from.empty() ? at + from : text::join(at, " < ", from);
}

}  // namespace berth::internal::memory

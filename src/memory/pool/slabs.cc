// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/slabs.h"

#include <bit>
#include <new>

#include "berth/base/checked.h"
#include "os/memory/memory.h"

namespace berth::internal::memory {

Status Slabs::open(std::size_t range_bytes) noexcept {
  if (table_ != nullptr) return {};
  const std::size_t bytes = range_bytes / kSlabGrain * sizeof(std::uint32_t);
  const Result<void*> table = os::reserve(bytes, alignof(std::uint32_t));
  if (!table) return table.failure();
  // Pages that are never touched cost nothing.
  Status committed = os::commit(*table, *try_align_up(bytes, os::page_bytes()));
  if (!committed) {
    (void)os::release(*table, bytes).ok();
    return committed;
  }
  table_ = static_cast<std::uint32_t*>(*table);
  table_bytes_ = bytes;
  return {};
}

void Slabs::close() noexcept {
  if (table_ != nullptr) (void)os::release(table_, table_bytes_).ok();
  table_ = nullptr;
}

bool Slabs::add_stream(std::uint32_t stream) noexcept {
  try {
    while (lists_.size() <= stream) lists_.push_back(std::make_unique<Lists>());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Slabs::link_last(Slab* slab) noexcept {
  List& list = list_of(*slab);
  slab->previous = list.last;
  slab->next = nullptr;
  (list.last != nullptr ? list.last->next : list.first) = slab;
  list.last = slab;
}

void Slabs::link_first(Slab* slab) noexcept {
  List& list = list_of(*slab);
  slab->previous = nullptr;
  slab->next = list.first;
  (list.first != nullptr ? list.first->previous : list.last) = slab;
  list.first = slab;
}

void Slabs::unlink(Slab* slab) noexcept {
  List& list = list_of(*slab);
  (slab->previous != nullptr ? slab->previous->next : list.first) = slab->next;
  (slab->next != nullptr ? slab->next->previous : list.last) = slab->previous;
}

void Slabs::mark(const Slab& slab, std::uint32_t number) noexcept {
  const std::size_t first = slab.extent->begin / kSlabGrain;
  for (std::size_t i = 0; i < slab.extent->bytes / kSlabGrain; ++i) table_[first + i] = number;
}

bool Slabs::add(PoolExtent* extent, SizeClass size_class, std::uint32_t stream) noexcept {
  const ClassInfo& info = classes_[size_class];
  const std::uint32_t first_entry = nodes_.reserve(1) ? entries_.take(size_class, info.blocks) : 0;
  if (first_entry == 0) return false;
  Slab* const slab = nodes_.take();
  slab->extent = extent;
  slab->stream = stream;
  slab->first_entry = first_entry;
  slab->size_class = size_class;
  slab->free = info.blocks;
  for (std::uint32_t i = 0; i < info.blocks; ++i) {
    slab->is_free[i / 64] |= 1ULL << (i % 64);
    BlockEntry& entry = entries_[first_entry + i];
    entry.serial.store(0);
    entry.set_where(extent->begin + std::size_t{i} * info.bytes, 0);
    entry.kind.store(size_class);
    entry.mark.store(0);
  }
  extent->slab = slab->index + 1;
  extent->stream = stream;
  mark(*slab, slab->index + 1);
  slab_bytes_ += info.slab_bytes;
  free_bytes_ += info.slab_bytes;
  link_first(slab);  // `take` comes next: no slab in a list is all free
  return true;
}

// A slab with free blocks of the next longer class, of at most twice the size, whose blocks have every
// alignment that those of the class have.
Slabs::Slab* Slabs::find_roomier(SizeClass size_class, std::uint32_t stream) const noexcept {
  const std::uint32_t bytes = classes_[size_class].bytes;
  for (SizeClass c = size_class + 1; c < classes_.count() && classes_[c].bytes <= 2 * bytes; ++c) {
    if (std::countr_zero(classes_[c].bytes) < std::countr_zero(bytes)) continue;
    if (Slab* const found = (*lists_[stream])[c].first) return found;
  }
  return nullptr;
}

std::size_t Slabs::take(SizeClass size_class, std::uint32_t stream, std::uint32_t owner, std::span<BlockEntry*> into) noexcept {
  Slab* slab = (*lists_[stream])[size_class].first;
  if (slab == nullptr && is_mostly_free()) slab = find_roomier(size_class, stream);
  if (slab == nullptr) return 0;
  const ClassInfo& info = classes_[slab->size_class];
  std::size_t count = 0;
  // From one slab after another, but not from a new one just to fill the batch, nor from many that have a block
  // or two each: those are far apart.
  for (int slabs = 0; slab != nullptr && slabs < kMostSlabs && count < into.size(); ++slabs) {
    for (std::size_t word = 0; word < slab->is_free.size() && count < into.size() && slab->free > 0; ++word) {
      while (slab->is_free[word] != 0 && count < into.size()) {
        const auto bit = static_cast<std::uint32_t>(std::countr_zero(slab->is_free[word]));
        slab->is_free[word] &= slab->is_free[word] - 1;
        --slab->free;
        free_bytes_ -= info.bytes;
        into[count] = &entries_[slab->first_entry + static_cast<std::uint32_t>(64 * word) + bit];
        __builtin_prefetch(into[count++], 1);  // overlaps the cache misses of the batch
      }
    }
    Slab* const following = slab->next;
    if (slab->free == 0) unlink(slab);
    slab = following;
  }
  for (BlockEntry* const entry : into.first(count)) {
    entry->set_where(entry->offset(), owner);
    entry->kind.store(size_class);  // a longer block passes for one of the class it is used for
  }
  return count;
}

PoolExtent* Slabs::give(BlockEntry* entry) noexcept {
  const std::size_t offset = entry->offset();
  Slab* const slab = nodes_.at(table_[offset / kSlabGrain] - 1);
  const std::uint32_t i = entries_.number(entry) - slab->first_entry;
  entry->set_where(offset, 0);
  slab->is_free[i / 64] |= 1ULL << (i % 64);
  const ClassInfo& info = classes_[slab->size_class];
  free_bytes_ += info.bytes;
  if (++slab->free == 1) link_last(slab);
  if (slab->free < info.blocks) return nullptr;
  unlink(slab);
  mark(*slab, 0);
  slab_bytes_ -= info.slab_bytes;
  free_bytes_ -= info.slab_bytes;
  entries_.give_back(slab->size_class, slab->first_entry);
  PoolExtent* const extent = slab->extent;
  nodes_.give_back(slab);
  return extent;
}

BlockEntry* Slabs::at(std::size_t offset) const noexcept {
  const std::uint32_t cell = table_[offset / kSlabGrain];
  if (cell == 0) return nullptr;
  if ((cell & kLargeBit) != 0) {
    BlockEntry& entry = entries_[cell & ~kLargeBit];
    return entry.offset() == offset ? &entry : nullptr;
  }
  const Slab* const slab = nodes_.at(cell - 1);
  const std::size_t inside = offset - slab->extent->begin;
  const ClassInfo& info = classes_[slab->size_class];
  return inside % info.bytes == 0 && inside / info.bytes < info.blocks
             ? &entries_[slab->first_entry + static_cast<std::uint32_t>(inside / info.bytes)]
             : nullptr;
}

std::string Slabs::audit() const {
  std::size_t free_blocks = 0;
  for (const auto& lists : lists_) {
    for (SizeClass c = 0; c < classes_.count(); ++c) {
      for (const Slab* slab = (*lists)[c].first; slab != nullptr; slab = slab->next) {
        std::size_t bits = 0;
        for (const std::uint64_t word : slab->is_free) bits += static_cast<std::size_t>(std::popcount(word));
        if (bits != slab->free || bits == 0 || bits >= classes_[c].blocks) return "slabs: a slab in a list is full, empty, or miscounted";
        if (slab->size_class != c) return "slabs: a slab is in another class's list";
        if (slab->next != nullptr && slab->next->previous != slab) return "slabs: a list is torn";
        free_blocks += bits * classes_[c].bytes;
      }
    }
  }
  return free_blocks <= free_bytes_ ? "" : "slabs: more blocks are free than are counted";
}

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/slabs.h"

#include <bit>
#include <new>

namespace berth::internal::memory {

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

bool Slabs::add(PoolExtent* extent, const std::byte* begin, SizeClass size_class, std::uint32_t stream) noexcept {
  const ClassInfo& info = classes_[size_class];
  if (!nodes_.reserve(1) || !map_.reserve(extent->begin, extent->bytes)) return false;
  const BlockRef first = entries_.take(info.blocks);
  if (!first) return false;
  Slab* const slab = nodes_.take();
  slab->extent = extent;
  slab->stream = stream;
  slab->first = first;
  slab->size_class = size_class;
  slab->free = info.blocks;
  for (std::uint32_t i = 0; i < info.blocks; ++i) slab->is_free[i / 64] |= 1ULL << (i % 64);
  first.set_group(begin, info.bytes, slab->index);
  map_.set(extent->begin, extent->bytes, first);
  extent->slab = slab->index + 1;
  extent->stream = stream;
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

std::size_t Slabs::take(SizeClass size_class, std::uint32_t stream, std::span<BlockRef> into) noexcept {
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
        into[count] = slab->first.later(static_cast<std::uint32_t>(64 * word) + bit);
        __builtin_prefetch(into[count++].operator->(), 1);  // overlaps the cache misses of the batch
      }
    }
    Slab* const following = slab->next;
    if (slab->free == 0) unlink(slab);
    slab = following;
  }
  return count;
}

PoolExtent* Slabs::give(BlockRef block) noexcept {
  Slab* const slab = nodes_.at(block.group().number.load());
  const std::uint32_t i = block.index();
  slab->is_free[i / 64] |= 1ULL << (i % 64);
  const ClassInfo& info = classes_[slab->size_class];
  free_bytes_ += info.bytes;
  if (++slab->free == 1) link_last(slab);
  if (slab->free < info.blocks) return nullptr;
  unlink(slab);
  slab_bytes_ -= info.slab_bytes;
  free_bytes_ -= info.slab_bytes;
  PoolExtent* const extent = slab->extent;
  map_.set(extent->begin, extent->bytes, {});
  entries_.give_back(slab->first);
  nodes_.give_back(slab);
  return extent;
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

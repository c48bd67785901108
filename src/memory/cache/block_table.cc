// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/block_table.h"

#include <algorithm>
#include <new>

#include "berth/base/checked.h"
#include "os/memory/memory.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kLeastTable = std::size_t{1} << 20;
constexpr std::size_t kGrowth = 8;       // it grows by an eighth of what it has
constexpr std::size_t kHugePages = 16;   // only a table that is so many times as long gets huge pages
constexpr std::size_t kFreeChunks = 16;  // keep their memory, for the next groups,
constexpr std::size_t kFreeShare = 4;    // and a quarter of what is used
// The longest group that a cookie can name: what lies before the group's first entry is part of the table too.
constexpr std::size_t kTableAlignment = sizeof(BlockEntry) << BlockRef::kOrderMask;

}  // namespace

BlockTable::~BlockTable() {
  if (begin_ != 0) (void)os::release(reinterpret_cast<void*>(begin_), reserved_).ok();
}

std::size_t BlockTable::bytes_for(std::size_t memory_bytes) noexcept {
  const std::size_t per_block = sizeof(BlockEntry) + sizeof(BlockGroup) / BlockTable::kMostBlocks + 1;
  return std::max(*try_align_up(memory_bytes / SizeClasses::kUnit * per_block, kChunkBytes), kLeastTable);
}

Status BlockTable::open(std::size_t most_bytes) noexcept {
  if (begin_ != 0) return {};
  std::size_t bytes = std::max(*try_align_up(most_bytes, kChunkBytes), kLeastTable);
  Result<void*> range = os::reserve(bytes, kTableAlignment);
  while (!range && bytes > kLeastTable) {  // address space may be short
    bytes = *try_align_up(bytes / 2, kChunkBytes);
    range = os::reserve(bytes, kTableAlignment);
  }
  if (!range) return range.failure();
  begin_ = reinterpret_cast<std::uintptr_t>(*range);
  reserved_ = bytes;
  return {};
}

BlockRef BlockTable::take(std::uint32_t blocks) noexcept {
  refusal_ = kNoTables;
  const auto order = static_cast<unsigned>(std::bit_width(blocks));  // of a power of two that is more than `blocks`
  std::uint32_t number = partial_[order];
  if (number == kNone) number = add_chunk(order);
  if (number == kNone) return {};
  Chunk& chunk = chunks_[number];
  std::uint32_t index = chunk.free;
  if (index == kNone)
    index = chunk.cut++;
  else
    chunk.free = reinterpret_cast<const BlockGroup*>(group_at(number, index))->number.load();
  if (++chunk.used == groups_in_chunk(order)) unlink(number);
  const BlockRef first = BlockRef::first_of(group_at(number, index), order);
  for (std::uint32_t i = 0; i < blocks; ++i) first.later(i)->state.store(0);
  first.group().where.store(BlockEntry::kGroup);
  return first;
}

void BlockTable::give_back(BlockRef any) noexcept {
  BlockGroup& group = any.group();
  if (const std::uint32_t left = group.number.load(); group.block_bytes.load() != 0 && (left & BlockGroup::kShared) != 0) {
    group.number.store(left - 1);
    if (left - 1 != BlockGroup::kShared) return;
  }
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(&group) - begin_;
  const auto number = static_cast<std::uint32_t>(offset / kChunkBytes);
  Chunk& chunk = chunks_[number];
  group.where.store(0);
  group.number.store(chunk.free);
  chunk.free = static_cast<std::uint32_t>(offset % kChunkBytes / sizeof(BlockEntry) >> chunk.order);
  if (chunk.used-- == groups_in_chunk(chunk.order)) link(number);
  if (chunk.used != 0) return;
  unlink(number);
  chunk.free = kNone;
  chunk.cut = 0;
  const std::size_t used = chunks_.size() - free_count_ - bare_count_;
  if (free_count_ >= kFreeChunks + used / kFreeShare && discard(number)) return;
  chunk.next = free_;
  free_ = number;
  ++free_count_;
}

void BlockTable::trim(std::size_t most) noexcept {
  for (; free_ != kNone && most > 0; --most) {
    const std::uint32_t number = free_;
    free_ = chunks_[number].next;
    if (!discard(number)) {
      free_ = number;
      return;
    }
    --free_count_;
  }
}

// A chunk that is cut into groups of that order, none of which is used yet; kNone when there is none.
std::uint32_t BlockTable::add_chunk(unsigned order) noexcept {
  std::uint32_t number = free_;
  if (number != kNone) {
    free_ = chunks_[number].next;
    --free_count_;
  } else if (bare_ != kNone) {
    number = bare_;
    bare_ = chunks_[number].next;
    --bare_count_;
  } else {
    if ((chunks_.size() + 1) * kChunkBytes > committed_.load() && !commit_more()) return kNone;
    try {
      chunks_.emplace_back();
    } catch (const std::bad_alloc&) {
      return kNone;
    }
    number = static_cast<std::uint32_t>(chunks_.size() - 1);
  }
  chunks_[number].order = static_cast<std::uint8_t>(order);
  link(number);
  return number;
}

bool BlockTable::commit_more() noexcept {
  const std::size_t had = committed_.load();
  const std::size_t wanted = std::max(*try_align_up(had / kGrowth, kChunkBytes), kChunkBytes);
  const auto commit = [&](std::size_t bytes) -> std::size_t {
    if (bytes == 0) return 0;
    const Status done = os::commit(reinterpret_cast<void*>(begin_ + had), bytes);
    if (!done) refusal_ = done.failure();
    return done ? bytes : 0;
  };
  std::size_t more = commit(std::min(wanted, reserved_ - had));
  if (more == 0) more = commit(std::min(kChunkBytes, reserved_ - had));
  if (more == 0) return false;
  // A pool with many blocks accesses entries all over the table. One with few would lose most of a huge page.
  const std::size_t few = kHugePages * os::huge_page_bytes();
  if (const std::size_t from = std::max(had, few); from < had + more)
    os::prefer_huge_pages(reinterpret_cast<void*>(begin_ + from), had + more - from);
  committed_.store(had + more);
  return true;
}

bool BlockTable::discard(std::uint32_t chunk) noexcept {
  if (!os::discard(reinterpret_cast<void*>(begin_ + chunk * kChunkBytes), kChunkBytes)) return false;
  chunks_[chunk].next = bare_;
  bare_ = chunk;
  ++bare_count_;
  return true;
}

void BlockTable::link(std::uint32_t chunk) noexcept {
  std::uint32_t& first = partial_[chunks_[chunk].order];
  chunks_[chunk].previous = kNone;
  chunks_[chunk].next = first;
  if (first != kNone) chunks_[first].previous = chunk;
  first = chunk;
}

void BlockTable::unlink(std::uint32_t chunk) noexcept {
  const Chunk& one = chunks_[chunk];
  (one.previous != kNone ? chunks_[one.previous].next : partial_[one.order]) = one.next;
  if (one.next != kNone) chunks_[one.next].previous = one.previous;
}

std::string BlockTable::audit() const {
  std::size_t unused = 0;
  for (const std::uint32_t list : {free_, bare_}) {
    for (std::uint32_t i = list; i != kNone && unused <= chunks_.size(); i = chunks_[i].next, ++unused) {
      if (chunks_[i].used != 0) return "block table: a chunk that is free has groups";
    }
  }
  if (unused != free_count_ + bare_count_) return "block table: free chunks are miscounted";
  std::size_t partial = 0;
  for (unsigned order = 0; order <= kMostOrder; ++order) {
    for (std::uint32_t i = partial_[order]; i != kNone && partial <= chunks_.size(); i = chunks_[i].next, ++partial) {
      if (chunks_[i].order != order || chunks_[i].used >= groups_in_chunk(order)) return "block table: a chunk is in the wrong list";
    }
  }
  const auto is_partial = [](const Chunk& c) { return c.used != 0 && c.used < groups_in_chunk(c.order); };
  if (static_cast<std::size_t>(std::ranges::count_if(chunks_, is_partial)) != partial)
    return "block table: a chunk with free groups is in no list";
  return chunks_.size() * kChunkBytes <= committed_.load() ? "" : "block table: more is used than is committed";
}

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/block_table.h"

#include <algorithm>
#include <bit>

#include "os/memory/memory.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kMostEntries = std::size_t{1} << 26;
constexpr std::size_t kFewestEntries = std::size_t{1} << 16;
constexpr std::size_t kBytesPerEntry = 512;  // of the range, most of which is for large blocks

// Reserves and commits the table.
Result<void*> reserve_entries(std::size_t count) noexcept {
  const Result<void*> range = os::reserve(count * sizeof(BlockEntry), alignof(BlockEntry));
  if (!range) return range;
  const Status usable = os::commit(*range, count * sizeof(BlockEntry));
  if (usable) {
    // A pool with many blocks accesses entries all over the table. A pool with few does not get a huge page for
    // them.
    const std::size_t few = 2 * os::huge_page_bytes();
    if (count * sizeof(BlockEntry) > few) os::prefer_huge_pages(static_cast<std::byte*>(*range) + few, count * sizeof(BlockEntry) - few);
    return range;
  }
  (void)os::release(*range, count * sizeof(BlockEntry)).ok();
  return usable.failure();
}

}  // namespace

BlockTable::~BlockTable() {
  if (entries_ != nullptr) (void)os::release(entries_, count_ * sizeof(BlockEntry)).ok();
}

Status BlockTable::open(std::size_t range_bytes) noexcept {
  if (entries_ != nullptr) return {};
  std::size_t count = std::clamp(std::bit_ceil(range_bytes / kBytesPerEntry), kFewestEntries, kMostEntries);
  Result<void*> range = reserve_entries(count);
  while (!range && count > kFewestEntries) {  // address space may be short, or overcommit off
    count /= 2;
    range = reserve_entries(count);
  }
  if (!range) return range.failure();
  entries_ = static_cast<BlockEntry*>(*range);
  count_ = count;
  return {};
}

std::uint32_t BlockTable::take(SizeClass kind, std::uint32_t count) noexcept {
  if (const std::uint32_t group = free_[kind]; group != 0) {
    free_[kind] = entries_[group].kind.load();
    return group;
  }
  if (count >= count_ - used_) return 0;
  const std::uint32_t first = used_ + 1;
  used_ += count;
  return first;
}

void BlockTable::give_back(SizeClass kind, std::uint32_t first) noexcept {
  entries_[first].kind.store(free_[kind]);
  free_[kind] = first;
}

}  // namespace berth::internal::memory

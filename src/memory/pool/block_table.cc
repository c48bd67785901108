// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/block_table.h"

#include <algorithm>
#include <bit>

#include "os/memory/memory.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kMostSlots = std::size_t{1} << 26;
constexpr std::size_t kFewestSlots = std::size_t{1} << 16;
constexpr std::size_t kBytesPerSlot = 512;  // of the range, most of which is for large blocks and never used up

// Addresses, and leave to use them.
Result<void*> reserve_slots(std::size_t count) noexcept {
  const Result<void*> range = os::reserve(count * sizeof(Slot), alignof(Slot));
  if (!range) return range;
  const Status usable = os::commit(*range, count * sizeof(Slot));
  if (usable) {
    // A pool with many blocks looks at slots all over the table. One with few does not get a huge page for them.
    const std::size_t few = 2 * os::huge_page_bytes();
    if (count * sizeof(Slot) > few) os::prefer_huge_pages(static_cast<std::byte*>(*range) + few, count * sizeof(Slot) - few);
    return range;
  }
  (void)os::release(*range, count * sizeof(Slot)).ok();
  return usable.failure();
}

}  // namespace

SlotTable::~SlotTable() {
  if (slots_ != nullptr) (void)os::release(slots_, count_ * sizeof(Slot)).ok();
}

Status SlotTable::open(std::size_t range_bytes) noexcept {
  if (slots_ != nullptr) return {};
  std::size_t count = std::clamp(std::bit_ceil(range_bytes / kBytesPerSlot), kFewestSlots, kMostSlots);
  Result<void*> range = reserve_slots(count);
  while (!range && count > kFewestSlots) {  // the process may be short of addresses, or the kernel strict about promises
    count /= 2;
    range = reserve_slots(count);
  }
  if (!range) return range.failure();
  slots_ = static_cast<Slot*>(*range);
  count_ = count;
  return {};
}

std::uint32_t SlotTable::take(SizeClass kind, std::uint32_t count) noexcept {
  if (const std::uint32_t group = free_[kind]; group != 0) {
    free_[kind] = slots_[group].kind.load();
    return group;
  }
  if (count >= count_ - used_) return 0;
  const std::uint32_t first = used_ + 1;
  used_ += count;
  return first;
}

void SlotTable::give_back(SizeClass kind, std::uint32_t first) noexcept {
  slots_[first].kind.store(free_[kind]);
  free_[kind] = first;
}

}  // namespace berth::internal::memory

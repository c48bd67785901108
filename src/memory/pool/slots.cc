// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/slots.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "os/memory.h"

namespace berth {

namespace {

constexpr std::size_t kMostSlots = std::size_t{1} << 26;
constexpr std::size_t kFewestSlots = std::size_t{1} << 18;
constexpr std::size_t kStep = 256_KiB / sizeof(Slot);  // slots that get memory at a time

}  // namespace

SlotTable::~SlotTable() {
  if (slots_ != nullptr) (void)os::release(slots_, reserved_ * sizeof(Slot)).ok();
}

Status SlotTable::open() noexcept {
  std::size_t slots = kMostSlots;
  Result<void*> range = os::reserve(slots * sizeof(Slot), alignof(Slot));
  while (!range && slots > kFewestSlots) {
    slots /= 2;
    range = os::reserve(slots * sizeof(Slot), alignof(Slot));
  }
  if (!range) return range.failure();
  slots_ = static_cast<Slot*>(*range);
  reserved_ = slots;
  return {};
}

std::uint32_t SlotTable::take(SizeClass kind, std::uint32_t count) noexcept {
  if (const std::uint32_t group = free_[kind]; group != 0) {
    free_[kind] = slots_[group].size.load();
    return group;
  }
  const std::uint32_t used = used_.load();
  const std::size_t end = std::size_t{used} + count + 1;
  if (end > reserved_) return 0;
  if (end > committed_) {
    const std::size_t wanted = std::min(*try_align_up(end, kStep), reserved_);
    if (!os::commit(slots_ + committed_, (wanted - committed_) * sizeof(Slot))) return 0;
    committed_ = wanted;  // fresh memory is zero, which is an empty slot
  }
  used_.store(used + count);
  return used + 1;
}

void SlotTable::give_back(SizeClass kind, std::uint32_t first) noexcept {
  slots_[first].size.store(free_[kind]);
  free_[kind] = first;
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/slot_allocator.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"

namespace berth {

using namespace internal;

namespace {

constexpr int kMostRange = 1 << 20;

void check_bytes(std::size_t bytes) {
  if (bytes > kMaxBytes / 2)
    base::refuse(ErrorCode::size_overflow, text::join("a slot of ", bytes, " bytes"), "no memory is so large", "check its size");
}

}  // namespace

struct SlotAllocator::State {
  struct FreeSlot {
    std::size_t bytes;
    std::uint64_t released;  // counts releases: of equal slots, the first comes first
    std::uint32_t slot;
    friend bool operator<(const FreeSlot& a, const FreeSlot& b) { return std::tie(a.bytes, a.released) < std::tie(b.bytes, b.released); }
  };
  using FreeSlots = std::set<FreeSlot>;

  // A range of an arena in which nothing lies yet.
  struct Gap {
    std::size_t begin;
    std::size_t end;
  };

  struct Use {
    std::uint32_t colour = UINT32_MAX;  // of the last request
    std::size_t alignment = 1;          // the greatest requested
    bool in_use = false;
    bool pinned = false;          // was occupied as it was
    FreeSlots::iterator at = {};  // in its device's list, while it is free
  };

  int match_range;
  std::size_t given = 0;  // slots that were there from the start
  std::vector<PlanSlot> slots = {};
  std::vector<Use> uses = {};        // of each slot
  std::vector<FreeSlots> free = {};  // by device
  std::uint64_t releases = 0;

  std::uint32_t add(const PlanSlot& slot) {
    slots.push_back(slot);
    uses.emplace_back();
    if (free.size() <= slot.device) free.resize(slot.device + std::size_t{1});
    return static_cast<std::uint32_t>(slots.size() - 1);
  }

  void set_free(std::uint32_t slot) {
    uses[slot].in_use = false;
    uses[slot].at = free[slots[slot].device].insert({slots[slot].bytes, releases++, slot}).first;
  }

  void take(std::uint32_t slot) {
    free[slots[slot].device].erase(uses[slot].at);
    uses[slot].in_use = true;
  }

  std::uint32_t find(const SlotRequest& request) const {
    if (match_range == 0 || request.device >= free.size()) return kNoSlot;
    const FreeSlots& list = free[request.device];
    const auto range = static_cast<std::size_t>(match_range);
    const auto middle = list.lower_bound({request.bytes, 0, 0});
    const auto top = list.upper_bound({try_multiply(request.bytes, range).value_or(SIZE_MAX), UINT64_MAX, 0});
    const std::uint32_t larger = best(middle, top, request, [&](const FreeSlot& one) {
      return !uses[one.slot].pinned || slots[one.slot].offset % request.alignment == 0;
    });
    if (larger != kNoSlot) return larger;
    const auto bottom = list.lower_bound({request.bytes / range, 0, 0});
    return best(std::make_reverse_iterator(middle), std::make_reverse_iterator(bottom), request,
                [&](const FreeSlot& one) { return !uses[one.slot].pinned; });
  }

  // The first that suits and has the colour, else the first that suits.
  template <class Iterator, class Suits>
  std::uint32_t best(Iterator begin, Iterator end, const SlotRequest& request, Suits suits) const {
    std::uint32_t first = kNoSlot;
    for (auto at = begin; at != end; ++at) {
      if (!suits(*at)) continue;
      if (uses[at->slot].colour == request.colour) return at->slot;
      if (first == kNoSlot) first = at->slot;
    }
    return first;
  }

  // Those that were given in their order, then the new ones by falling alignment, which leaves the fewest gaps. Around
  // slots that are pinned the largest come first, because few gaps are large.
  std::vector<std::uint32_t> order() const {
    std::vector<std::uint32_t> out(slots.size());
    std::iota(out.begin(), out.end(), 0U);
    const bool pinned = std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.pinned; });
    if (pinned) {
      std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) { return slots[a].bytes > slots[b].bytes; });
    } else {
      std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(given), out.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return uses[a].alignment > uses[b].alignment; });
    }
    std::erase_if(out, [&](std::uint32_t slot) { return uses[slot].pinned; });
    return out;
  }

  // What pinned slots leave of each device's arena; the last gap has no end.
  std::vector<std::vector<Gap>> gaps() const {
    std::vector<std::uint32_t> pinned;
    for (std::uint32_t slot = 0; slot < slots.size(); ++slot)
      if (uses[slot].pinned && slots[slot].bytes != 0) pinned.push_back(slot);
    std::sort(pinned.begin(), pinned.end(), [&](std::uint32_t a, std::uint32_t b) { return slots[a].offset < slots[b].offset; });
    std::vector<std::vector<Gap>> out(free.size(), {{0, SIZE_MAX}});
    for (const std::uint32_t slot : pinned) {
      std::vector<Gap>& list = out[slots[slot].device];
      const std::size_t end = checked_add(slots[slot].offset, slots[slot].bytes, "the bytes of all slots");
      list.back().end = slots[slot].offset;
      if (list.back().begin >= list.back().end) list.pop_back();
      list.push_back({end, SIZE_MAX});
    }
    return out;
  }
};

SlotAllocator::SlotAllocator(int match_range, std::vector<PlanSlot> slots) : state_(std::make_unique<State>(State{match_range})) {
  if (match_range < 0 || match_range > kMostRange)
    base::refuse(text::join("a match range of ", match_range), "it must be from 0 to 1,048,576", "use 16, or 0 for no reuse");
  for (const PlanSlot& slot : slots) check_bytes(std::max(slot.bytes, slot.offset));
  for (const PlanSlot& slot : slots) state_->set_free(state_->add(slot));
  state_->given = slots.size();
}

SlotAllocator::~SlotAllocator() = default;
SlotAllocator::SlotAllocator(SlotAllocator&&) noexcept = default;
SlotAllocator& SlotAllocator::operator=(SlotAllocator&&) noexcept = default;

std::uint32_t SlotAllocator::request(const SlotRequest& request) {
  check_bytes(request.bytes);
  if (!is_power_of_two(request.alignment) || request.alignment > kMaxBytes / 2)
    base::refuse(ErrorCode::invalid_alignment, text::join("a slot aligned to ", request.alignment),
                 "it is not a power of two that memory could have", "use one, such as 64");
  if (request.bytes == 0) return kNoSlot;
  std::uint32_t slot = state_->find(request);
  if (slot != kNoSlot) {
    state_->take(slot);
  } else {
    slot = state_->add({request.device, request.bytes, 0});
    state_->uses[slot].in_use = true;
  }
  State::Use& use = state_->uses[slot];
  state_->slots[slot].bytes = std::max(state_->slots[slot].bytes, request.bytes);
  use.alignment = std::max(use.alignment, request.alignment);
  use.colour = request.colour;
  return slot;
}

void SlotAllocator::release(std::uint32_t slot) {
  if (slot == kNoSlot) return;
  if (slot >= state_->slots.size() || !state_->uses[slot].in_use)
    base::refuse(text::join("releasing slot ", slot), "it is not in use", "release once what request gave");
  state_->set_free(slot);
}

void SlotAllocator::occupy(std::uint32_t slot) {
  if (slot >= state_->slots.size() || state_->uses[slot].in_use)
    base::refuse(text::join("occupying slot ", slot), "it is not free",
                 "occupy slots that the allocator was made with, before any request");
  state_->take(slot);
  state_->uses[slot].pinned = true;
}

const std::vector<PlanSlot>& SlotAllocator::slots() const noexcept { return state_->slots; }

std::vector<PlanSlot> SlotAllocator::laid_out() const {
  std::vector<PlanSlot> out = state_->slots;
  std::vector<std::vector<State::Gap>> gaps = state_->gaps();
  for (const std::uint32_t index : state_->order()) {
    PlanSlot& slot = out[index];
    for (State::Gap& gap : gaps[slot.device]) {
      const std::size_t offset = checked_align_up(gap.begin, state_->uses[index].alignment, "the bytes of all slots");
      if (offset > gap.end || slot.bytes > gap.end - offset) continue;
      slot.offset = offset;
      gap.begin = checked_add(offset, slot.bytes, "the bytes of all slots");
      break;
    }
  }
  return out;
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "memory/space/extent_map.h"

#include <algorithm>
#include <new>

#include "base/poison.h"
#include "berth/base/checked.h"

namespace berth::internal::memory {

bool ExtentMap::open(const AddressRange& range) noexcept {
  if (!nodes_.reserve(2)) return false;
  try {
    if (rules_.in_pieces()) borders_.open(range.bytes, rules_.page_bytes, rules_.piece_bytes);
    if (rules_.pays_by_the_piece()) pins_.open(range.bytes, rules_.page_bytes);
    const Extents::Fit fit = rules_.pays_by_the_piece() ? Extents::Fit::best : Extents::Fit::first;
    auto slabs = std::make_unique<Extents>(nodes_, 0, range.split, rules_.page_bytes);
    parts_[1] = std::make_unique<Extents>(nodes_, range.split, range.bytes, rules_.page_bytes, fit);
    parts_[0] = std::move(slabs);
  } catch (const std::bad_alloc&) {
    return false;
  }
  range_ = range;
  return true;
}

std::size_t ExtentMap::longest_cached() const noexcept {
  return std::max(parts_[0]->clean_tree().widest(), parts_[1]->clean_tree().widest());
}

bool ExtentMap::add_stream(std::uint32_t stream) noexcept {
  if (!parts_[0]->add_stream(stream) || !parts_[1]->add_stream(stream)) return false;
  try {
    if (done_.size() <= stream) done_.resize(stream + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void ExtentMap::clean(std::uint32_t stream, std::uint64_t point) noexcept {
  if (stream >= done_.size()) return;  // it was never added
  for (const auto& part : parts_) part->clean(stream, point);
  done_[stream] = std::max(done_[stream], point);
}

void ExtentMap::forget_stream(std::uint32_t stream) noexcept {
  if (stream < done_.size()) done_[stream] = 0;
}

bool ExtentMap::pass_on(std::uint32_t from, std::uint64_t point, std::uint32_t to, std::uint64_t as) noexcept {
  if (std::max(from, to) >= done_.size()) return false;
  const bool slabs = parts_[0]->pass_on(from, point, to, as);
  return parts_[1]->pass_on(from, point, to, as) || slabs;
}

Transit ExtentMap::enter(const PageWindow& window, std::size_t page_bytes, std::size_t ahead) noexcept {
  const std::size_t window_end = window.begin + window.bytes;
  Extents& part = part_of(window.begin);
  Transit transit;
  for (PoolExtent* e = nodes_.at(window.first->index); e != nullptr && e->begin < window_end;) {
    const bool bare = e->state == ExtentState::bare;
    const std::size_t from = std::max(e->begin, bare ? align_down(window.begin, page_bytes) : window.begin);
    const std::size_t to = std::min(e->end(), bare ? round_up(window_end, page_bytes) + ahead : window_end);
    PoolExtent* const entered = part.cut(e, from, to - from, ExtentState::transit);
    if (transit.first == nullptr) transit.first = entered;
    transit.end = to;
    e = entered->next;
  }
  return transit;
}

PoolExtent* ExtentMap::withdraw(const PageSpan& span, std::uint32_t stream) noexcept {
  Extents& part = part_of(span.begin);
  return part.cut(part.tree(stream).covering(span.begin), span.begin, span.bytes(), ExtentState::transit);
}

PoolExtent* ExtentMap::withdraw_bare(const PageSpan& span) noexcept {
  Extents& part = part_of(span.begin);
  return part.cut(part.bare_tree().covering(span.begin), span.begin, span.bytes(), ExtentState::transit);
}

PoolExtent* ExtentMap::free_cached(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept {
  return part_of(extent->begin).free_cached(extent, is_over(stream, point) ? 0 : stream, point);
}

// Poisons only what has memory: the address sanitizer's shadow of a whole range takes an eighth of its size.
void ExtentMap::become_bare(PoolExtent* extent) noexcept {
  make_touchable(*extent);
  part_of(extent->begin).free_bare(extent);
}

void ExtentMap::leave(const Transit& transit) noexcept {
  for (PoolExtent* e = transit.first; e != nullptr && e->begin < transit.end;) {
    PoolExtent* const following = e->next;
    if (e->has_memory)
      put_back(e);
    else
      part_of(e->begin).free_bare(e);
    e = following;
  }
}

PoolExtent* ExtentMap::coalesce(const Transit& transit) noexcept {
  Extents& part = part_of(transit.first->begin);
  while (transit.first->end() < transit.end) part.join_next(transit.first);
  return transit.first;
}

PoolExtent* ExtentMap::make_live(PoolExtent* from, std::size_t begin, std::size_t bytes) noexcept {
  PoolExtent* const made = part_of(begin).cut(from, begin, bytes, ExtentState::live);
  pin(*made);
  return made;
}

PoolExtent* ExtentMap::free_live(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept {
  unpin(*extent);
  return part_of(extent->begin).free_cached(extent, stream, point);
}

PoolExtent* ExtentMap::split_live(PoolExtent* extent, std::size_t bytes) noexcept {
  unpin(*extent);
  PoolExtent* const rest = part_of(extent->begin).split(extent, bytes);
  pin(*extent);
  pin(*rest);
  return rest;
}

void ExtentMap::join_live(PoolExtent* extent) noexcept {
  unpin(*extent);
  unpin(*extent->next);
  part_of(extent->begin).join_next(extent);
  pin(*extent);
}

void ExtentMap::pin(const PoolExtent& live) noexcept {
  if (rules_.pays_by_the_piece()) pins_.add(borders_, {live.begin, live.end()});
}

void ExtentMap::unpin(const PoolExtent& live) noexcept {
  if (rules_.pays_by_the_piece()) pins_.remove(borders_, {live.begin, live.end()});
}

void ExtentMap::note_memory(PoolExtent* extent) noexcept {
  extent->has_memory = true;
  if (rules_.in_pieces()) borders_.committed(extent->begin, extent->bytes);
}

void ExtentMap::make_untouchable(const PoolExtent& extent) const noexcept {
  if (kAddressSanitizer && rules_.host_access) poison(range_.base + extent.begin, extent.bytes);
}

void ExtentMap::make_touchable(const PoolExtent& extent) const noexcept {
  if (kAddressSanitizer && rules_.host_access) unpoison(range_.base + extent.begin, extent.bytes);
}

void ExtentMap::make_touchable() const noexcept {
  if (!kAddressSanitizer) return;
  for (const auto& part : parts_) {
    for (const PoolExtent* e = part->front(); e != nullptr; e = e->next) {
      if (e->state != ExtentState::bare) make_touchable(*e);
    }
  }
}

std::string ExtentMap::audit() const {
  for (const auto& part : parts_) {
    if (std::string wrong = part->audit(); !wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace berth::internal::memory

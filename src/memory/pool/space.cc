// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/space.h"

#include <algorithm>
#include <new>

#include "base/poison.h"
#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "berth/device/backend.h"
#include "memory/cache/size_classes.h"
#include "os/process/fork.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kRangePerMemory = 4;      // addresses, for each byte the device has
constexpr std::size_t kLeastRange = 64_MiB;     // fewer addresses than this are not worth a pool
constexpr std::size_t kMostRange = 1ULL << 46;  // offsets must fit in 48 bits
constexpr std::size_t kSlabsShare = 4;          // one part in so many of the range is for slabs
constexpr std::size_t kMostRuns = 64;           // places looked at for a block that no cached extent holds

constexpr std::size_t least_range(std::size_t page) noexcept { return std::max(kLeastRange, kSlabsShare * page); }

bool is_usable(const PoolExtent* e, std::uint32_t stream) noexcept {
  return e != nullptr && (e->state == ExtentState::bare || (e->state == ExtentState::cached && (e->stream == 0 || e->stream == stream)));
}

}  // namespace

// One thread at a time: several that each reserve all the addresses they can get would leave the first fewer than it could have had.
Status Space::open() noexcept {
  const std::uint64_t process = os::fork_generation() + 1;
  while (opener_ == process) opened_.wait(mutex_);
  if (base_ != nullptr) return {};
  opener_ = process;
  const Status done = open_alone();
  opener_ = 0;
  opened_.notify_all();
  return done;
}

Status Space::open_alone() noexcept {
  const std::size_t page = settings_.page_bytes;
  std::size_t size = 0;
  const Result<void*> range = os::unlocked(mutex_, [&] { return reserve_range(size); });
  if (!range) return range.failure();
  const std::size_t split = align_down(size / kSlabsShare, page);
  if (make_parts(split, size)) {
    base_ = static_cast<std::byte*>(*range);
    size_ = size;
    split_ = split;
    return {};
  }
  os::unlocked(mutex_, [&] { (void)backend_.release(*range, size).ok(); });
  return Failure{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};
}

// As many addresses as the device's memory makes sensible, and their number. Goes to the device.
Result<void*> Space::reserve_range(std::size_t& size) noexcept {
  const std::size_t page = settings_.page_bytes;
  std::size_t total = 0;
  try {
    total = backend_.memory_info().total_bytes;
  } catch (const std::bad_alloc&) {
  }
  const std::size_t wanted = up(std::clamp(total, kLeastRange, kMostRange / kRangePerMemory) * kRangePerMemory, page);
  const std::size_t alignment = std::max(page, kSlabGrain);  // the table of slabs goes by offset
  size = wanted;
  Result<void*> range = reserve_most(size, alignment);
  if (range && size < wanted && size / 2 >= least_range(page)) {  // then they are not for one pool alone: half is left for the next
    (void)backend_.release(*range, size).ok();
    size = up(size / 2, page);
    range = reserve_most(size, alignment);
  }
  return range;
}

// Addresses may be limited too: as many as there are, by halves.
Result<void*> Space::reserve_most(std::size_t& size, std::size_t alignment) noexcept {
  Result<void*> range = backend_.reserve(size, alignment);
  while (!range && size / 2 >= least_range(settings_.page_bytes)) {
    size = up(size / 2, settings_.page_bytes);
    range = backend_.reserve(size, alignment);
  }
  return range;
}

bool Space::make_parts(std::size_t split, std::size_t size) noexcept {
  if (!nodes_.reserve(2)) return false;
  try {
    if (in_pieces()) borders_.open(size, settings_.page_bytes, backend_.properties().piece_bytes);
    auto slabs = std::make_unique<Extents>(nodes_, 0, split);
    parts_[1] = std::make_unique<Extents>(nodes_, split, size);
    parts_[0] = std::move(slabs);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Space::make_untouchable(const PoolExtent& extent) const noexcept {
  if (kAddressSanitizer && backend_.properties().abilities.host_access) poison(base_ + extent.begin, extent.bytes);
}

void Space::make_touchable(const PoolExtent& extent) const noexcept {
  if (kAddressSanitizer && backend_.properties().abilities.host_access) unpoison(base_ + extent.begin, extent.bytes);
}

void Space::make_touchable() const noexcept {
  if (!kAddressSanitizer) return;
  for (const auto& part : parts_) {
    for (const PoolExtent* e = part->front(); e != nullptr; e = e->next) {
      if (e->state != ExtentState::bare) make_touchable(*e);
    }
  }
}

void Space::become_bare(PoolExtent* extent) noexcept {
  make_touchable(*extent);
  part_of(extent->begin).free_bare(extent);
}

void Space::close() noexcept {
  if (base_ == nullptr) return;
  make_touchable();
  (void)backend_.release(base_, size_).ok();
  budget_.give_up(figures_.committed);
  base_ = nullptr;
}

bool Space::add_stream(std::uint32_t stream) noexcept {
  if (!parts_[0]->add_stream(stream) || !parts_[1]->add_stream(stream)) return false;
  try {
    if (done_.size() <= stream) done_.resize(stream + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::size_t Space::aligned(std::size_t offset, std::size_t alignment) const noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(base_);
  return up(base + offset, alignment) - base;
}

PoolExtent* Space::make_live(PoolExtent* from, std::size_t begin, std::size_t bytes) noexcept {
  PoolExtent* const made = part_of(begin).cut(from, begin, bytes, ExtentState::live);
  figures_.live += bytes;
  figures_.peak_live = std::max(figures_.peak_live, figures_.live);
  decay_.saw(cached_bytes());
  handed_out_ += bytes;
  return made;
}

Result<PoolExtent*> Space::take(Part which, std::size_t bytes, std::size_t alignment, std::uint32_t stream, Effort effort) noexcept {
  Extents& part = *parts_[static_cast<std::size_t>(which)];
  const std::size_t padded = bytes + (alignment > kGrain ? alignment - kGrain : 0);
  if (padded > size_ || !nodes_.reserve(Extents::kNodesPerCut)) return Failure{ErrorCode::out_of_memory, 0, "the pool's range is shorter"};
  if (PoolExtent* const found = part.first_cached(padded, stream)) return make_live(found, aligned(found->begin, alignment), bytes);
  if (effort == Effort::cached_only) return Failure{ErrorCode::busy, 0, "no cached memory fits"};
  end_echoes();
  const Window window = find_window(part, bytes, alignment, stream);
  if (window.first == nullptr) return Failure{ErrorCode::out_of_memory, 0, "no run of addresses is long enough"};
  return occupy(window, bytes, {.stream = stream, .effort = effort});
}

// Makes a live extent of free ones, and sees to it that there is memory under all of it.
Result<PoolExtent*> Space::occupy(const Window& window, std::size_t bytes, Filling filling) noexcept {
  if (!nodes_.reserve(Extents::kNodesPerCut * (window.extents + 1)))
    return Failure{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};
  PoolExtent* const first = enter_transit(window, bytes, filling.effort == Effort::usual ? ahead_of(window, bytes) : 0);
  std::size_t end = first->end();
  for (const PoolExtent* e = first->next; e != nullptr && e->begin < window.begin + bytes; e = e->next) end = e->end();
  const Status filled = fill_window(first, end, filling);
  if (!filled || !nodes_.reserve(Extents::kNodesPerCut)) {
    leave_transit(first, end);
    return filled ? Failure{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"} : filled.failure();
  }
  Extents& part = part_of(first->begin);
  while (first->end() < end) part.join_next(first);
  // Free for a moment, so that what lies outside the block joins its neighbours. What was free for the stream alone is inside; what has been put
  // under other addresses while the stream is at work on it may not be.
  const std::uint32_t stream = is_over(filling.stream, filling.point) ? 0 : filling.stream;
  return make_live(part.free_cached(first, stream, filling.point), window.begin, bytes);
}

// Of the runs of free extents, the place where the least memory is missing; of equal ones the lowest.
Space::Window Space::find_window(const Extents& part, std::size_t bytes, std::size_t alignment, std::uint32_t stream) const noexcept {
  Window best;
  std::size_t looked_at = 0;
  for (PoolExtent* bare = part.bare_tree().first(1); bare != nullptr; bare = part.bare_tree().next(bare, 1)) {
    // Past the bound only the long ones at the end of the range, which always fit, are of interest.
    if (++looked_at > kMostRuns && bare->bytes < bytes + alignment) continue;
    PoolExtent* run = bare;
    while (is_usable(run->previous, stream)) run = run->previous;
    const PoolExtent* last = bare;
    while (is_usable(last->next, stream)) last = last->next;
    for (const PoolExtent* e = run; e != last->next; e = e->next) {
      // Where an extent begins, and where a block ends with it.
      const std::size_t low = aligned(e->begin, alignment);
      if (fits(low, bytes, last->end())) consider(best, run, low, bytes);
      if (e->end() < run->begin + bytes) continue;
      const std::size_t high = align_down(reinterpret_cast<std::uintptr_t>(base_) + e->end() - bytes, std::max(alignment, kGrain)) -
                               reinterpret_cast<std::uintptr_t>(base_);
      if (high >= run->begin && high < last->end()) consider(best, run, high, bytes);
    }
    if (looked_at > kMostRuns && best.first != nullptr) break;
    // The run is done; go on behind it.
    while (bare->next != nullptr && bare->begin < last->begin) {
      PoolExtent* const following = part.bare_tree().next(bare, 1);
      if (following == nullptr || following->begin > last->begin) break;
      bare = following;
    }
  }
  return best;
}

void Space::consider(Window& best, PoolExtent* run, std::size_t begin, std::size_t bytes) const noexcept {
  Window window{.begin = begin, .missing = 0};
  for (PoolExtent* e = run; e != nullptr && e->begin < begin + bytes; e = e->next) {
    if (e->end() <= begin) continue;
    if (window.first == nullptr) window.first = e;
    ++window.extents;
    if (e->state != ExtentState::bare) continue;
    const std::size_t from = std::max(e->begin, align_down(begin, settings_.page_bytes));
    const std::size_t to = std::min(e->end(), up(begin + bytes, settings_.page_bytes));
    window.missing += to - from;
  }
  if (window.missing < best.missing) best = window;
}

// What is committed beyond a large block, where each piece costs: as much as the bound on all that is committed leaves, so that the next
// block finds part of what it needs, or all, and pieces are fewer and longer. But no more than a small part of the peak in all: the holes of
// blocks that share a piece cannot be taken back from it, and a pool at its limit lives on those.
std::size_t Space::ahead_of(const Window& window, std::size_t bytes) const noexcept {
  if (!pays_by_the_piece() || window.begin < split_ || window.missing == 0) return 0;
  const auto allowed = static_cast<std::size_t>(settings_.tight * static_cast<double>(std::max(figures_.peak_live, figures_.live + bytes)));
  const std::size_t wanted = figures_.committed + promised_ + window.missing;
  const std::size_t shared = figures_.peak_live / kPieceShare;
  if (wanted >= allowed || window.missing >= budget_.room() || window.missing >= shared) return 0;
  return align_down(std::min({allowed - wanted, budget_.room() - window.missing, shared - window.missing}), settings_.page_bytes);
}

// Takes what the window covers out of the trees: cached memory just as far as the block goes, bare addresses in whole pages, and some ahead.
PoolExtent* Space::enter_transit(const Window& window, std::size_t bytes, std::size_t ahead) noexcept {
  const std::size_t window_end = window.begin + bytes;
  Extents& part = part_of(window.begin);
  PoolExtent* first = nullptr;
  for (PoolExtent* e = window.first; e != nullptr && e->begin < window_end;) {
    const bool bare = e->state == ExtentState::bare;
    const std::size_t from = std::max(e->begin, bare ? align_down(window.begin, settings_.page_bytes) : window.begin);
    const std::size_t to = std::min(e->end(), bare ? up(window_end, settings_.page_bytes) + ahead : window_end);
    PoolExtent* const piece = part.cut(e, from, to - from, ExtentState::transit);
    if (first == nullptr) first = piece;
    e = piece->next;
  }
  return first;
}

PoolExtent* Space::give(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept {
  figures_.live -= extent->bytes;
  return part_of(extent->begin).free_cached(extent, stream, point);
}

void Space::clean(std::uint32_t stream, std::uint64_t point) noexcept {
  if (stream >= done_.size()) return;  // it was never made ready
  for (const auto& part : parts_) part->clean(stream, point);
  done_[stream] = std::max(done_[stream], point);
  for (PoolExtent* const echo : echoes_) {
    if (is_over(echo->stream, echo->point)) echo->stream = 0;
  }
}

void Space::end_stream(std::uint32_t stream) noexcept {
  clean(stream, UINT64_MAX);
  if (stream < done_.size()) done_[stream] = 0;
}

bool Space::pass_on(std::uint32_t from, std::uint64_t point, std::uint32_t to, std::uint64_t as) noexcept {
  if (std::max(from, to) >= done_.size()) return false;
  const bool slabs = parts_[0]->pass_on(from, point, to, as);
  return parts_[1]->pass_on(from, point, to, as) || slabs;
}

bool Space::grow(PoolExtent* extent, std::size_t bytes, std::uint32_t stream, Effort effort) noexcept {
  if (effort != Effort::cached_only) end_echoes();
  const std::size_t more = bytes - extent->bytes;
  Window window{.begin = extent->end(), .missing = 0, .first = extent->next};
  std::size_t there = 0;
  for (const PoolExtent* e = window.first; there < more; e = e->next) {
    if (!is_usable(e, stream)) return false;
    if (e->state == ExtentState::bare) window.missing += e->bytes;
    there += e->bytes;
    ++window.extents;
  }
  if ((window.missing > 0 && effort == Effort::cached_only) || !occupy(window, more, {.stream = stream, .effort = effort})) return false;
  part_of(extent->begin).join_next(extent);
  return true;
}

Status Space::reserve(std::size_t bytes) noexcept {
  const auto rounded = try_align_up(bytes, kGrain);
  if (!rounded) return Failure{ErrorCode::out_of_memory, 0, "no address space is that large"};
  if (*rounded <= part(Part::large).clean_tree().widest()) return {};
  const Result<PoolExtent*> taken = take(Part::large, *rounded, kGrain, 0, Effort::usual);
  if (!taken) return taken.failure();
  handed_out_ -= *rounded;
  give(*taken, 0, 0);
  return {};
}

std::size_t Space::longest_cached() const noexcept {
  return base_ == nullptr ? 0 : std::max(parts_[0]->clean_tree().widest(), parts_[1]->clean_tree().widest());
}

std::string Space::audit() const {
  if (base_ == nullptr) return {};
  std::size_t live = 0;
  std::size_t held = 0;
  std::size_t moving = 0;  // without the lock: with memory or not, nobody can say
  for (const auto& part : parts_) {
    if (std::string wrong = part->audit(); !wrong.empty()) return wrong;
    for (const PoolExtent* e = part->front(); e != nullptr; e = e->next) {
      live += e->state == ExtentState::live ? e->bytes : 0;
      held += e->state == ExtentState::cached || e->state == ExtentState::live ? e->bytes : 0;
      moving += e->state == ExtentState::transit ? e->bytes : 0;
    }
  }
  if (live != figures_.live) return "space: live bytes are not the sum of the live extents";
  if (figures_.committed < held || figures_.committed > held + moving)
    return "space: committed bytes are not the sum of the extents with memory";
  if (figures_.committed > figures_.peak_committed || figures_.live > figures_.peak_live) return "space: a peak is too low";
  if (figures_.committed + promised_ > budget_.used()) return "space: more is committed than was claimed";
  return {};
}

}  // namespace berth::internal::memory

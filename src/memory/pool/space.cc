// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/space.h"

#include <algorithm>
#include <new>

#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "memory/pool/size_classes.h"

namespace berth {

namespace {

constexpr std::size_t kRangePerMemory = 4;      // addresses, for each byte the device has
constexpr std::size_t kLeastRange = 64_MiB;     // fewer addresses than this are not worth a pool
constexpr std::size_t kMostRange = 1ULL << 46;  // offsets must fit in 48 bits
constexpr std::size_t kSlabsShare = 4;          // one part in so many of the range is for slabs
constexpr std::size_t kLeastEdge = 256_KiB;     // shorter edges are not worth a mapping of their own
constexpr std::size_t kMostRuns = 64;           // places looked at for a block that no cached extent holds
constexpr std::size_t kMostSources = 64;        // extents looked at for one that has a whole page

std::size_t up(std::size_t value, std::size_t to) noexcept { return (value + to - 1) & ~(to - 1); }  // offsets: far from the end

bool is_usable(const Extent* e, std::uint32_t stream) noexcept {
  return e != nullptr && (e->state == ExtentState::bare || (e->state == ExtentState::cached && (e->stream == 0 || e->stream == stream)));
}

}  // namespace

Status Space::open() noexcept {
  const std::size_t page = settings_.page_bytes;
  mutex_.unlock();
  std::size_t total = 0;
  try {
    total = backend_.memory_info().total_bytes;
  } catch (const std::bad_alloc&) {
  }
  std::size_t size = up(std::clamp(total, kLeastRange, kMostRange / kRangePerMemory) * kRangePerMemory, page);
  const std::size_t alignment = std::max(page, kSlabGrain);  // the table of slabs goes by offset
  Result<void*> range = backend_.reserve(size, alignment);
  while (!range && size / 2 >= std::max(kLeastRange, kSlabsShare * page)) {  // addresses may be limited too
    size = up(size / 2, page);
    range = backend_.reserve(size, alignment);
  }
  mutex_.lock();
  if (!range) return base_ != nullptr ? Status() : range.failure();  // another thread may have been first, and taken the addresses
  const std::size_t split = align_down(size / kSlabsShare, page);
  if (base_ == nullptr && make_parts(split, size)) {
    base_ = static_cast<std::byte*>(*range);
    size_ = size;
    split_ = split;
    return {};
  }
  // Another thread was first, or there is no heap.
  mutex_.unlock();
  (void)backend_.release(*range, size).ok();
  mutex_.lock();
  return base_ != nullptr ? Status() : Failure{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};
}

bool Space::make_parts(std::size_t split, std::size_t size) noexcept {
  if (!nodes_.reserve(2)) return false;
  try {
    auto slabs = std::make_unique<Extents>(nodes_, 0, split);
    parts_[1] = std::make_unique<Extents>(nodes_, split, size);
    parts_[0] = std::move(slabs);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Space::close() noexcept {
  if (base_ == nullptr) return;
  (void)backend_.release(base_, size_).ok();
  base_ = nullptr;
}

bool Space::add_stream(std::uint32_t stream) noexcept { return parts_[0]->add_stream(stream) && parts_[1]->add_stream(stream); }

std::size_t Space::aligned(std::size_t offset, std::size_t alignment) const noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(base_);
  return up(base + offset, alignment) - base;
}

Extent* Space::make_live(Extent* from, std::size_t begin, std::size_t bytes) noexcept {
  Extent* const made = part_of(begin).cut(from, begin, bytes, ExtentState::live);
  figures_.live += bytes;
  figures_.peak_live = std::max(figures_.peak_live, figures_.live);
  handed_out_ += bytes;
  return made;
}

Result<Extent*> Space::take(Part which, std::size_t bytes, std::size_t alignment, std::uint32_t stream, Effort effort) noexcept {
  Extents& part = *parts_[static_cast<std::size_t>(which)];
  const std::size_t padded = bytes + (alignment > kGrain ? alignment - kGrain : 0);
  if (padded > size_ || !nodes_.reserve(Extents::kNodesPerCut)) return Failure{ErrorCode::out_of_memory, 0, "the pool's range is shorter"};
  if (Extent* const found = part.first_cached(padded, stream)) return make_live(found, aligned(found->begin, alignment), bytes);
  if (effort == Effort::cached_only) return Failure{ErrorCode::busy, 0, "no cached memory fits"};
  const Window window = find_window(part, bytes, alignment, stream);
  if (window.first == nullptr) return Failure{ErrorCode::out_of_memory, 0, "no run of addresses is long enough"};
  if (!nodes_.reserve(Extents::kNodesPerCut * (window.extents + 1)))
    return Failure{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};
  Extent* const first = enter_transit(window, bytes);
  std::size_t end = first->end();
  for (const Extent* e = first->next; e != nullptr && e->begin < window.begin + bytes; e = e->next) end = e->end();
  const Status filled = fill_window(first, end, effort);
  if (!filled || !nodes_.reserve(Extents::kNodesPerCut)) {
    leave_transit(first, end);
    return filled ? Failure{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"} : filled.failure();
  }
  while (first->end() < end) part.join_next(first);
  // Free for a moment, so that what lies outside the block joins its neighbours. What was only the stream's is inside.
  return make_live(part.free_cached(first, 0, 0), window.begin, bytes);
}

// Of the runs of free extents, the place where the least memory is missing; of equal ones the lowest.
Space::Window Space::find_window(const Extents& part, std::size_t bytes, std::size_t alignment, std::uint32_t stream) const noexcept {
  Window best;
  std::size_t looked_at = 0;
  for (Extent* bare = part.bare_tree().first(1); bare != nullptr; bare = part.bare_tree().next(bare, 1)) {
    // Past the bound only the long ones at the end of the range, which always fit, are of interest.
    if (++looked_at > kMostRuns && bare->bytes < bytes + alignment) continue;
    Extent* run = bare;
    while (is_usable(run->previous, stream)) run = run->previous;
    const Extent* last = bare;
    while (is_usable(last->next, stream)) last = last->next;
    for (const Extent* e = run; e != last->next; e = e->next) {
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
      Extent* const following = part.bare_tree().next(bare, 1);
      if (following == nullptr || following->begin > last->begin) break;
      bare = following;
    }
  }
  return best;
}

void Space::consider(Window& best, Extent* run, std::size_t begin, std::size_t bytes) const noexcept {
  Window window{.begin = begin, .missing = 0};
  for (Extent* e = run; e != nullptr && e->begin < begin + bytes; e = e->next) {
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

// Takes what the window covers out of the trees: cached memory just as far as the block goes, bare addresses in whole pages.
Extent* Space::enter_transit(const Window& window, std::size_t bytes) noexcept {
  const std::size_t window_end = window.begin + bytes;
  Extents& part = part_of(window.begin);
  Extent* first = nullptr;
  for (Extent* e = window.first; e != nullptr && e->begin < window_end;) {
    const bool bare = e->state == ExtentState::bare;
    const std::size_t from = std::max(e->begin, bare ? align_down(window.begin, settings_.page_bytes) : window.begin);
    const std::size_t to = std::min(e->end(), bare ? up(window_end, settings_.page_bytes) : window_end);
    Extent* const piece = part.cut(e, from, to - from, ExtentState::transit);
    if (first == nullptr) first = piece;
    e = piece->next;
  }
  return first;
}

Status Space::fill_window(Extent* first, std::size_t end, Effort effort) noexcept {
  for (;;) {
    Steps steps;
    if (!nodes_.reserve((Extents::kNodesPerCut + 1) * kMostSteps))
      return Failure{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};
    if (!plan_steps(first, end, effort, steps)) {
      for (std::size_t i = 0; i < steps.count; ++i) {
        const Step& step = steps.step[i];
        if (step.source != nullptr)
          part_of(step.source->begin).free_cached(step.source, 0, 0);
        else
          promised_ -= step.target->bytes;
      }
      return Failure{ErrorCode::out_of_memory, 0, "the pool's limit"};
    }
    if (steps.count == 0) return {};
    const Status done = run_steps(steps);
    if (!done) return done;
  }
}

// Decides where the missing memory comes from, for as many pieces as there is room. False: the limit is in the way.
bool Space::plan_steps(Extent* first, std::size_t end, Effort effort, Steps& steps) noexcept {
  std::size_t missing = 0;
  std::size_t window_bytes = 0;
  for (const Extent* e = first; e != nullptr && e->begin < end; e = e->next) {
    window_bytes += e->bytes;
    if (!e->has_memory) missing += e->bytes;
  }
  const auto peak = static_cast<double>(std::max(figures_.peak_live, figures_.live + window_bytes));
  const auto beyond = [&](double factor) {
    const auto allowed = static_cast<std::size_t>(factor * peak);
    const std::size_t wanted = figures_.committed + promised_ + missing;
    return effort == Effort::all_pages ? missing : wanted > allowed ? std::min(missing, wanted - allowed) : 0;
  };
  std::size_t pages_wanted =
      std::max(beyond(settings_.tight), figures_.committed + promised_ + missing > settings_.limit_bytes ? missing : 0);
  const bool edges = effort == Effort::all_pages || moved_edges_ < handed_out_ / 100;
  std::size_t edges_wanted = edges ? beyond(settings_.tighter_edges) : 0;
  for (Extent* target = first; target != nullptr && target->begin < end; target = target->next) {
    if (target->has_memory) continue;
    if (steps.count == kMostSteps) return true;
    Extent* source = pages_wanted > 0 ? find_source(std::min(target->bytes, pages_wanted), false) : nullptr;
    if (source == nullptr && edges_wanted > 0) {
      source = find_source(std::min(target->bytes, edges_wanted), true);
      if (source != nullptr) moved_edges_ += source->bytes;
    }
    if (source == nullptr) {
      pages_wanted = edges_wanted = 0;  // there is no more to be had
      // Promised before it is asked for, so that no two threads pass the limit together.
      if (target->bytes > settings_.limit_bytes - std::min(figures_.committed + promised_, settings_.limit_bytes)) return false;
      promised_ += target->bytes;
    } else {
      if (source->bytes < target->bytes) part_of(target->begin).split(target, source->bytes);
      pages_wanted -= std::min(pages_wanted, source->bytes);
      edges_wanted -= std::min(edges_wanted, source->bytes);
    }
    steps.step[steps.count++] = {source, target};
  }
  return true;
}

// Cached memory to move elsewhere, at most so much of it: whole pages, from the highest address down, or edges of pages.
Extent* Space::find_source(std::size_t most, bool edges) noexcept {
  const std::size_t unit = edges ? backend_.properties().unit_bytes : settings_.page_bytes;
  const std::size_t wanted = align_down(most, unit);
  const std::size_t least = edges ? std::min(kLeastEdge, wanted) : unit;
  if (wanted == 0) return nullptr;
  for (const std::size_t which : {1U, 0U}) {
    Extents& part = *parts_[which];
    std::size_t looked_at = 0;
    for (Extent* e = part.clean_tree().last(least); e != nullptr && looked_at < kMostSources; e = part.clean_tree().previous(e, least)) {
      ++looked_at;
      const std::size_t from = up(e->begin, unit);
      const std::size_t to = align_down(e->end(), unit);
      if (to <= from || to - from < least) continue;
      const std::size_t bytes = std::min(to - from, wanted);
      return part.cut(e, to - bytes, bytes, ExtentState::transit);
    }
  }
  return nullptr;
}

// Without the lock. On failure the source may have lost its memory all the same: it then says so itself.
Status Space::run_step(const Step& step) noexcept {
  std::byte* const target = base_ + step.target->begin;
  const std::size_t bytes = step.target->bytes;
  if (step.source != nullptr) {
    std::byte* const source = base_ + step.source->begin;
    if (backend_.properties().abilities.move && backend_.move(source, target, bytes)) {
      step.source->has_memory = false;
      return {};
    }
    // Some kernels and limits do not let pages move: give back and take anew.
    const Status gone = backend_.decommit(source, bytes);
    if (!gone) return gone;
    step.source->has_memory = false;
  }
  return backend_.commit(target, bytes);
}

Status Space::run_steps(Steps& steps) noexcept {
  mutex_.unlock();
  Status status;
  std::size_t done = 0;
  while (done < steps.count && status.ok()) {
    status = run_step(steps.step[done]);
    if (status) ++done;
  }
  mutex_.lock();
  for (std::size_t i = 0; i < steps.count; ++i) {
    const Step& step = steps.step[i];
    const std::size_t bytes = step.target->bytes;
    step.target->has_memory = i < done;
    if (step.source == nullptr) {
      promised_ -= bytes;
      if (i < done) {
        figures_.committed += bytes;
        ++figures_.commits;
      }
    } else if (step.source->has_memory) {
      part_of(step.source->begin).free_cached(step.source, 0, 0);
    } else {
      ++figures_.moves;
      ++figures_.decommits;
      if (i >= done) figures_.committed -= bytes;
      part_of(step.source->begin).free_bare(step.source);
    }
  }
  figures_.peak_committed = std::max(figures_.peak_committed, figures_.committed);
  return status;
}

// Puts what a failed request had taken back as it is now.
void Space::leave_transit(Extent* first, std::size_t end) noexcept {
  Extents& part = part_of(first->begin);
  for (Extent* e = first; e != nullptr && e->begin < end;) {
    Extent* const following = e->next;
    if (e->has_memory)
      part.free_cached(e, e->stream, e->ticket);
    else
      part.free_bare(e);
    e = following;
  }
}

Extent* Space::give(Extent* extent, std::uint32_t stream, std::uint64_t ticket) noexcept {
  figures_.live -= extent->bytes;
  return part_of(extent->begin).free_cached(extent, stream, ticket);
}

void Space::clean(std::uint32_t stream, std::uint64_t ticket) noexcept {
  for (const auto& part : parts_) part->clean(stream, ticket);
}

bool Space::pass_on(std::uint32_t from, std::uint64_t ticket, std::uint32_t to, std::uint64_t as) noexcept {
  const bool slabs = parts_[0]->pass_on(from, ticket, to, as);
  return parts_[1]->pass_on(from, ticket, to, as) || slabs;
}

bool Space::grow(Extent* extent, std::size_t bytes, std::uint32_t stream) noexcept {
  Extent* const next = extent->next;
  const std::size_t more = bytes - extent->bytes;
  if (next == nullptr || next->state != ExtentState::cached || !is_usable(next, stream) || next->bytes < more) return false;
  if (!nodes_.reserve(Extents::kNodesPerCut)) return false;
  make_live(next, extent->end(), more);
  part_of(extent->begin).join_next(extent);
  return true;
}

Status Space::reserve(std::size_t bytes) noexcept {
  const auto rounded = try_align_up(bytes, kGrain);
  if (!rounded) return Failure{ErrorCode::out_of_memory, 0, "no address space is that large"};
  if (*rounded <= part(Part::large).clean_tree().widest()) return {};
  const Result<Extent*> taken = take(Part::large, *rounded, kGrain, 0, Effort::usual);
  if (!taken) return taken.failure();
  handed_out_ -= *rounded;
  give(*taken, 0, 0);
  return {};
}

std::size_t Space::longest_cached() const noexcept {
  return base_ == nullptr ? 0 : std::max(parts_[0]->clean_tree().widest(), parts_[1]->clean_tree().widest());
}

// False when the device would not take it.
bool Space::decommit(Extent* from, std::size_t begin, std::size_t end) noexcept {
  if (!nodes_.reserve(Extents::kNodesPerCut)) return false;
  Extent* const piece = part_of(begin).cut(from, begin, end - begin, ExtentState::transit);
  mutex_.unlock();
  const Status done = backend_.decommit(base_ + begin, end - begin);
  mutex_.lock();
  if (!done) {
    part_of(begin).free_cached(piece, 0, 0);
    return false;
  }
  figures_.committed -= end - begin;
  ++figures_.decommits;
  part_of(begin).free_bare(piece);
  return true;
}

void Space::trim(std::size_t keep) noexcept {
  if (base_ == nullptr) return;
  const std::size_t unit = backend_.properties().unit_bytes;
  for (const std::size_t which : {1U, 0U}) {
    std::size_t below = SIZE_MAX;  // everything above has been looked at: the lock is let go of in between
    while (cached_bytes() > keep) {
      Extent* e = parts_[which]->clean_tree().last(unit);
      while (e != nullptr && e->begin >= below) e = parts_[which]->clean_tree().previous(e, unit);
      if (e == nullptr) break;
      below = e->begin;
      const std::size_t end = align_down(e->end(), unit);
      const std::size_t bytes = std::min(up(cached_bytes() - keep, unit), end - std::min(end, up(e->begin, unit)));
      if (bytes > 0 && !decommit(e, end - bytes, end)) return;
    }
  }
}

void Space::trim_around(std::size_t begin, std::size_t bytes) noexcept {
  Extent* const e = part_of(begin).clean_tree().covering(begin);
  if (e == nullptr) return;  // in use after all, or a stream may still be at work on it
  const std::size_t unit = backend_.properties().unit_bytes;
  const std::size_t from = up(std::max(e->begin, align_down(begin, settings_.page_bytes)), unit);
  const std::size_t to = align_down(std::min(e->end(), up(begin + bytes, settings_.page_bytes)), unit);
  if (from < to) decommit(e, from, to);
}

std::string Space::audit() const {
  if (base_ == nullptr) return {};
  std::size_t live = 0;
  std::size_t held = 0;
  std::size_t moving = 0;  // without the lock: with memory or not, nobody can say
  for (const auto& part : parts_) {
    if (std::string wrong = part->audit(); !wrong.empty()) return wrong;
    for (const Extent* e = part->front(); e != nullptr; e = e->next) {
      live += e->state == ExtentState::live ? e->bytes : 0;
      held += e->state == ExtentState::cached || e->state == ExtentState::live ? e->bytes : 0;
      moving += e->state == ExtentState::transit ? e->bytes : 0;
    }
  }
  if (live != figures_.live) return "space: live bytes are not the sum of the live extents";
  if (figures_.committed < held || figures_.committed > held + moving)
    return "space: committed bytes are not the sum of the extents with memory";
  if (figures_.committed > figures_.peak_committed || figures_.live > figures_.peak_live) return "space: a peak is too low";
  if (figures_.committed > settings_.limit_bytes) return "space: the limit is exceeded";
  return {};
}

}  // namespace berth

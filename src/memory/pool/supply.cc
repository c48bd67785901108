// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/supply.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "os/clock.h"

namespace berth::internal::memory {

using Wait = StreamBook::Wait;

namespace {

constexpr std::uint32_t kPollEvery = 16;    // amortizes reading the clock over frees of large blocks
constexpr std::size_t kMostDecommits = 8;   // decommitted at most by a single free,
constexpr std::size_t kMostBytes = 16_MiB;  // and at most so many bytes;
constexpr std::size_t kHaste = 8;           // times as much when the decay is behind

}  // namespace

Result<std::uint32_t> Supply::make_ready(StreamRef stream) noexcept {
  if (!core_.is_open()) {
    if (holds_.any()) return Failure{ErrorCode::busy, 0, "the pool is empty, and its device is held"};
    if (const Status opened = core_.open(); !opened) return opened.failure();
  }
  std::uint32_t number = book_.find(stream);
  if (stream && number == 0) {
    if (!holds_.any()) book_.retire_streams([&](std::uint32_t gone) { caches_.retire_stream(gone); });
    number = book_.find(stream);  // another thread may have added it meanwhile
    const bool had_several = book_.has_several_streams();
    if (number == 0) number = book_.add(stream);
    if (number == 0) return PoolCore::kNoTables;
    if (!had_several && book_.has_several_streams()) caches_.flush_all();  // which ends the keeping of blocks
  }
  if (!core_.slabs.add_stream(number) || !core_.space.add_stream(number)) return PoolCore::kNoTables;
  ready_streams_ = std::max(ready_streams_, number + 1);  // both have made room for all up to it
  return number;
}

// ---- memory that leaves

void Supply::poll_decay() noexcept {
  const bool at_once = core_.decay_period.count() == 0;
  if (at_once || ++polls_ % kPollEvery == 0) decay(at_once ? Decayed::all : Decayed::a_few_pages);
}

void Supply::decay(Decayed how_much) noexcept {
  if (!is_usable()) return;
  Decay& idle = core_.decay;
  Space& space = core_.space;
  const std::uint64_t now = os::coarse_time_ns();
  if (idle.is_over(now)) {
    // From now on, memory in thread caches and memory that waited for streams that are done counts as cached.
    if (idle.period().count() != 0) {
      caches_.flush_all();
      regions_.end_period();
      book_.settle(Wait::no);
      if (holds_.any()) return;
    }
    // The mutex was released: another thread may have ended the period.
    if (idle.is_over(now)) idle.end_period(now, space.cached_bytes());
  }
  const bool all = how_much == Decayed::all;
  while (regions_.dissolve_idle() && all) {
    const os::Unlock released(core_.mutex);
  }
  if (!is_usable()) return;
  core_.entries.trim(all ? SIZE_MAX : kMostDecommits);
  const Space::Figures& figures = space.figures();
  const std::size_t above = figures.committed - std::min(figures.committed, reserved_);
  const std::size_t haste = !all && idle.is_behind(now) ? kHaste : 1;
  const std::size_t bytes = std::min({all ? idle.idle() : std::min(idle.due(), haste * kMostBytes), above, space.cached_bytes()});
  if (bytes == 0) return;
  space.trim_pages(space.cached_bytes() - bytes, all ? SIZE_MAX : haste * kMostDecommits);
}

void Supply::release_excess() noexcept {
  if (!is_usable() || core_.decay_period == PoolOptions::kNever) return;
  const Space::Figures& figures = core_.space.figures();
  peak_need_ = std::max({peak_need_, figures.peak_live, needed()});
  // What the space alone has held is no excess: a block's first and last pages are partly used.
  const std::size_t needed_most = saturating_scale(peak_need_, core_.target_ratio);
  const std::size_t bound = std::max(needed_most, figures.peak_committed) + std::max(core_.page_bytes, 1_MiB);
  const std::size_t held = figures.committed + core_.entries.bytes();
  const std::size_t above = figures.committed - std::min(figures.committed, reserved_);
  const std::size_t cached = core_.space.cached_bytes();
  if (held <= bound) return;
  core_.entries.trim(kMostDecommits);
  core_.space.trim_pages(cached - std::min({held - bound, above, cached}), kMostDecommits);
}

void Supply::give_pages_back(std::size_t begin, std::size_t bytes) noexcept {
  if (holds_.any()) {
    trim_after_hold_ = true;
    return;
  }
  book_.settle(Wait::yes);
  core_.space.trim_around(begin, bytes);
}

void Supply::trim_idle() noexcept {
  const os::Lock lock(core_.mutex);
  decay(Decayed::all);
}

void Supply::trim(std::size_t keep_bytes) noexcept {
  const os::Lock lock(core_.mutex);
  if (!is_usable()) return;
  gather(Wait::no);
  reserved_ = 0;
  core_.space.trim(keep_bytes);
  core_.entries.trim(SIZE_MAX);
}

Status Supply::reserve(std::size_t bytes) noexcept {
  const os::Lock lock(core_.mutex);
  if (core_.is_inherited()) return Failure{ErrorCode::fork_unsafe, 0, "the pool was made before fork"};
  if (const Result<std::uint32_t> able = ready({}); !able) return able.failure();
  regions_.dissolve_all();  // what is free in them is not live, and may be what is asked for
  if (holds_.any()) return Failure{ErrorCode::busy, 0, "the device is held"};
  const Status done = core_.space.reserve(bytes);
  if (done) reserved_ = std::max(reserved_, core_.space.figures().live + bytes);
  return done;
}

void Supply::begin_hold() noexcept {
  const os::Lock lock(core_.mutex);
  holds_.begin();
}

void Supply::end_hold() noexcept {
  const os::Lock lock(core_.mutex);
  if (!holds_.end() || !trim_after_hold_) return;
  trim_after_hold_ = false;
  gather(Wait::yes);
  core_.space.trim(0);
}

void Supply::close() noexcept {
  constexpr int kTries = 1000;  // a device may be slow to say that it is done
  Space& space = core_.space;
  for (int i = 0; i < kTries && book_.any_pending(); ++i) book_.settle(Wait::no);
  if (!book_.any_pending()) {
    if (parent_ != nullptr) space.trim(0);  // its pages return to its parent
    space.close();
    return;
  }
  space.make_touchable();
  const os::Unlock unlocked(core_.mutex);  // streams have their own locks. No other thread uses the pool now
  // The callback runs when this pool is gone. The budgets below its own still exist: the process's is never
  // destroyed, and the parent is kept alive.
  (void)book_.enqueue_behind_pending([&behind = core_.backend, parent = parent_, below = core_.budget.below(), base = space.base(),
                                      bytes = space.size_bytes(), committed = space.figures().committed] {
    (void)behind.release(base, bytes).ok();
    below->give_up(committed);
  });
}

// ---- pools that exchange pages

void Supply::add_child(const std::shared_ptr<Supply>& child) {
  const os::Lock lock(core_.mutex);
  std::erase_if(children_, [](const std::weak_ptr<Supply>& one) { return one.expired(); });
  children_.push_back(child);
}

std::size_t Supply::lend(std::span<const std::size_t> wanted, std::span<Loan> loans) noexcept {
  const os::Lock lock(core_.mutex);
  if (is_usable()) book_.settle(Wait::no);  // only clean memory is lent
  return is_usable() ? core_.space.lend(wanted, loans) : 0;
}

void Supply::settle(std::span<const Loan> loans) noexcept {
  const os::Lock lock(core_.mutex);
  core_.space.settle(loans);
}

bool Supply::adopt(std::byte* pages, std::size_t bytes) noexcept {
  const os::Lock lock(core_.mutex);
  return is_usable() && core_.space.adopt(pages, bytes);
}

Supply::Child Supply::child_at(std::size_t index) const noexcept {
  const os::Lock lock(core_.mutex);
  return index < children_.size() ? Child{true, children_[index].lock()} : Child{};
}

void Supply::release_to_relatives() noexcept {
  const os::Lock lock(core_.mutex);
  if (!is_usable()) return;
  gather(Wait::no);
  core_.space.trim(0);
  core_.entries.trim(SIZE_MAX);
}

bool Supply::press_relatives() noexcept {
  if (parent_ == nullptr && children_.empty()) return false;
  const os::Unlock unlocked(core_.mutex);
  Supply& root = parent_ == nullptr ? *this : *parent_;
  if (&root != this) root.release_to_relatives();
  std::size_t index = 0;
  for (Child child = root.child_at(index); child.exists; child = root.child_at(++index)) {
    if (child.supply != nullptr && child.supply.get() != this && !child.supply->core_.fixed_pages) child.supply->release_to_relatives();
  }
  return true;
}

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "memory/space/extent_map.h"

// The old addresses of memory that was moved while a stream was using it: the pages are mapped at both
// addresses until that work is done. Room is reserved before the device is called, so that what it did can
// always be recorded. Not thread-safe: the pool locks.
//
//     those that are + those to come <= capacity
namespace berth::internal::memory {

class Echoes {
 public:
  // Reserves room for so many more, if there is heap for them.
  void make_room(std::size_t more) noexcept {
    const std::size_t wanted = extents_.size() + to_come_ + more;
    try {
      if (wanted > extents_.capacity()) extents_.reserve(2 * wanted);
    } catch (const std::bad_alloc&) {
    }
  }
  std::size_t room() const noexcept { return extents_.capacity() - extents_.size() - to_come_; }
  std::size_t to_come() const noexcept { return to_come_; }

  // Announces an echo (REQUIRES: room); withdraws the announcement; adds the echo, whose memory is under the
  // target now.
  void expect() noexcept { ++to_come_; }
  void forget() noexcept { --to_come_; }
  void leave(PoolExtent* source, PoolExtent* target, const ExtentMap& map) noexcept {
    --to_come_;
    target->stream = source->stream;
    target->point = source->point;
    source->state = ExtentState::echo;
    source->has_memory = false;
    extents_.push_back(source);
    if (map.is_over(source->stream, source->point)) source->stream = 0;
  }

  // To be called when the frees of a stream are over.
  void clean(const ExtentMap& map) noexcept {
    for (PoolExtent* const echo : extents_) {
      if (map.is_over(echo->stream, echo->point)) echo->stream = 0;
    }
  }

  // Takes an echo that no pending work can touch, and puts it in transit; nullptr when there is none.
  PoolExtent* take_over() noexcept {
    const auto over = std::ranges::find(extents_, 0U, &PoolExtent::stream);
    if (over == extents_.end()) return nullptr;
    PoolExtent* const echo = *over;
    *over = extents_.back();
    extents_.pop_back();
    echo->state = ExtentState::transit;
    return echo;
  }

  std::string audit() const {
    const auto is_echo = [](const PoolExtent* e) { return e->state == ExtentState::echo && !e->has_memory; };
    if (!std::ranges::all_of(extents_, is_echo)) return "echoes: an extent is in another state";
    return extents_.size() + to_come_ <= extents_.capacity() ? "" : "echoes: there is no room for those to come";
  }

 private:
  std::vector<PoolExtent*> extents_;  // no pending work can touch those on stream 0
  std::size_t to_come_ = 0;
};

}  // namespace berth::internal::memory

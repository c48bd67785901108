// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "berth/base/units.h"
#include "memory/pool/pool.h"
#include "os/clock.h"

// Memory that a pool has not needed for a while goes back.
namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

constexpr std::uint32_t kPollEvery = 16;    // the clock is not free of cost beside the free of a large block
constexpr std::size_t kMostPieces = 8;      // given back at a time by a free that came for something else,
constexpr std::size_t kMostBytes = 16_MiB;  // and so much

}  // namespace

void Pool::poll_decay() noexcept {
  const bool at_once = decay_.period().count() == 0;
  if (at_once || ++polls_ % kPollEvery == 0) decay(at_once);
}

void Pool::decay(bool all) noexcept {
  if (holds_.any() || is_inherited() || base() == nullptr) return;
  if (const std::uint64_t now = os::coarse_time_ns(); decay_.is_over(now)) {
    // What waits in the caches of threads, and for streams that are done, counts from now on.
    if (decay_.period().count() != 0) {
      flush_caches();
      settle_streams(false);
      if (holds_.any()) return;
    }
    if (decay_.is_over(now)) decay_.end_period(now, space_.cached_bytes());  // the lock was let go: another thread may have done it
  }
  const Space::Figures& figures = space_.figures();
  const std::size_t above = figures.committed - std::min(figures.committed, reserved_);
  const std::size_t bytes = std::min({all ? decay_.idle() : std::min(decay_.due(), kMostBytes), above, space_.cached_bytes()});
  if (bytes == 0) return;
  space_.trim_pages(space_.cached_bytes() - bytes, all ? SIZE_MAX : kMostPieces);
}

void Pool::trim_idle() {
  const os::Lock lock(mutex_);
  decay(true);
}

}  // namespace berth

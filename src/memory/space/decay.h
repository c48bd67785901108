// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

// How much cached memory a pool has not needed for a while. Time is cut into periods. The least that was cached
// at any moment of a period was not needed in all of it; when the period ends, that much is idle, and is
// released in the course of the next. If it is needed meanwhile after all, the least of the new period falls,
// and what is idle with it. So there is no state for single pages.
//
//     cached   ▁▂▇▅▃▂▂▄▆▃▂▂▅▇▂▂▂▂▂▂▂▂▂▂▂          the least of each period is idle after it: 0, then 2, then 2 …
//     period   |------|------|------|------|
//
// It reads no clock, and knows no device: the pool does. Not thread-safe: the pool locks.
namespace berth::internal::memory {

class Decay {
 public:
  static constexpr std::chrono::milliseconds kNever = std::chrono::milliseconds::max();

  // At most `most_bytes` are released in a period as a side effect of other calls.
  Decay(std::chrono::milliseconds period, std::size_t most_bytes) noexcept : period_(period), most_(most_bytes) {}

  // Notes how much is cached now. To be called whenever some of it was used.
  void saw(std::size_t cached) noexcept {
    least_ = std::min(least_, cached);
    idle_ = std::min(idle_, cached);
  }

  bool is_over(std::uint64_t now_ns) noexcept {
    if (period_ == kNever) return false;
    if (began_ns_ == 0) began_ns_ = now_ns;
    return passed_ns(now_ns) / 1'000'000 >= static_cast<std::uint64_t>(period_.count());
  }

  // Ends the period and begins another.
  void end_period(std::uint64_t now_ns, std::size_t cached) noexcept {
    planned_ = idle_ = period_.count() == 0 ? cached : std::min(least_, cached);
    least_ = cached;
    given_ = gone_ = 0;
    began_ns_ = now_ns;
  }

  std::size_t idle() const noexcept { return idle_; }
  // Whether less was returned than the part of the period that has passed asks for.
  bool is_behind(std::uint64_t now_ns) const noexcept {
    const double passed = static_cast<double>(passed_ns(now_ns)) / 1e6 / static_cast<double>(period_.count());
    return static_cast<double>(given_) < passed * static_cast<double>(std::min(planned_, most_));
  }
  // How much may be released now as a side effect of another call.
  std::size_t due() const noexcept { return std::min(idle_, most_ - std::min(most_, given_)); }
  // Notes that so much was returned to the device, for whatever reason: it no longer counts as cached in this
  // period.
  void gave(std::size_t bytes) noexcept {
    given_ += bytes;
    gone_ += bytes;
    idle_ -= std::min(idle_, bytes);
    least_ -= std::min(least_, bytes);
  }

  // Notes that so much was committed for a request: as far as it takes back what was returned in this period,
  // it is as if that had stayed, and the request had used it.
  void took(std::size_t bytes) noexcept {
    const std::size_t back = std::min(bytes, gone_);
    gone_ -= back;
    idle_ += back;
    least_ += back;
  }

  std::chrono::milliseconds period() const noexcept { return period_; }

 private:
  // A thread may have read the clock before another began the period.
  std::uint64_t passed_ns(std::uint64_t now_ns) const noexcept { return now_ns > began_ns_ ? now_ns - began_ns_ : 0; }

  const std::chrono::milliseconds period_;
  const std::size_t most_;
  std::uint64_t began_ns_ = 0;
  std::size_t least_ = 0;    // cached in this period so far
  std::size_t idle_ = 0;     // since the last period, and not yet released
  std::size_t planned_ = 0;  // idle_ when this period began
  std::size_t given_ = 0;    // released in this period
  std::size_t gone_ = 0;     // of that, what was not committed again
};

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "plan/problem.h"

// The interface of all packers. A packer gives offsets to the buffers of one part: an interval of time whose
// ends no lifetime crosses.
namespace berth::internal::plan {

// A deadline and cancellation. Any number of threads may test one at the same time.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  Patience(std::optional<Clock::time_point> deadline, std::stop_token cancel) : deadline_(deadline), cancel_(std::move(cancel)) {}

  bool over() const { return cancel_.stop_requested() || done_.stop_requested() || (deadline_ && Clock::now() >= *deadline_); }

  // Whether a deadline comes before work of this length would be done. Without a deadline, never.
  bool is_short_for(Clock::duration work) const { return deadline_ && Clock::now() + work >= *deadline_; }

  const std::optional<Clock::time_point>& deadline() const noexcept { return deadline_; }

  // Whether a deadline ends the work; without one, packers that could go on for ever limit their steps.
  bool has_deadline() const noexcept { return deadline_.has_value(); }

  // The same, and over as soon as `done` is requested too.
  Patience unless(std::stop_token done) const {
    Patience out = *this;
    out.done_ = std::move(done);
    return out;
  }

  // The deadline of the first of `count` tasks that divide the remaining time.
  Patience share(std::size_t count) const {
    if (!deadline_ || count < 2) return *this;
    const Clock::time_point now = Clock::now();
    return {now + (*deadline_ - now) / static_cast<std::int64_t>(count), cancel_};
  }

 private:
  std::optional<Clock::time_point> deadline_;
  std::stop_token cancel_;
  std::stop_token done_ = {};
};

// An independent packing problem. Times are ranks: the first buffer begins at 0, and `steps` is the end of the
// last. The fixed buffers come first.
struct Part {
  std::vector<PackBuffer> buffers;
  std::uint32_t steps = 0;
  std::size_t fixed = 0;  // number of fixed buffers
  std::size_t lower_bound_bytes = 0;
  std::vector<std::uint32_t> times = {};  // the begin of each step, and the end of the last, in nodes of the
                                          // graph
  bool mirrored = false;                  // time is reversed: `times` count back …
  std::uint32_t last = 0;                 // … from this node
};

struct PackTask {
  const Part& part;
  std::size_t below;  // only a packing below this is of use
  const Patience& patience;
  std::size_t enough = 0;           // a packing this low is good enough
  std::uint64_t seed = 0;           // of random choices
  std::size_t capacity = SIZE_MAX;  // a packing above this is of no use, even if it is below `below`
  std::size_t threads = 1;          // threads of the exact search
  std::size_t sharing = 1;          // without a deadline, limits on steps are divided by this: so many parts share them
};

// Number of buffers in a part above which strategies that are not near linear do less.
inline constexpr std::size_t kVeryMany = 200'000;

enum class PackEnd : std::uint8_t {
  done,
  above,          // stopped: not below `below`
  too_much_live,  // it would take too long
  has_fixed,      // it does not support fixed buffers
  too_many,       // it is for a few buffers only
  gave_up,        // it reached the step limit that applies without a deadline
  out_of_time,
};
std::string_view to_note(PackEnd end) noexcept;  // for messages; empty when it is done

// With `done` there is a packing, below `PackTask::below`.
struct PackAnswer {
  PackEnd end = PackEnd::done;
  Packing packing = {};
  std::size_t proved_bytes = 0;  // lower bound of every packing; valid with any `end`
};

// Rounds an offset up. REQUIRES: no overflow, which the planner guarantees.
constexpr std::size_t align_offset(std::size_t from, std::size_t alignment) noexcept { return (from + alignment - 1) & ~(alignment - 1); }

}  // namespace berth::internal::plan

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

// What every packer is asked and answers. A packer gives heights to the buffers of one part: a stretch of time that no other buffer of the
// device reaches into.
namespace berth::internal::plan {

// Whether to go on: no deadline has passed, and nobody has cancelled.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  Patience(std::optional<Clock::time_point> deadline, std::stop_token cancel) : deadline_(deadline), cancel_(std::move(cancel)) {}

  bool over() const { return cancel_.stop_requested() || done_.stop_requested() || (deadline_ && Clock::now() >= *deadline_); }

  // Whether work is ended by the clock; else packers that could go on for ever count their steps.
  bool has_deadline() const noexcept { return deadline_.has_value(); }

  // The same, and over as soon as somebody else says so too.
  Patience unless(std::stop_token done) const {
    Patience out = *this;
    out.done_ = std::move(done);
    return out;
  }

  // For the first of `count` tasks that share what is left.
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

// Times are ranks: buffers of a part begin at 0, and `steps` is where the last ends. The fixed ones come first.
struct Part {
  std::vector<PackBuffer> buffers;
  std::uint32_t steps = 0;
  std::size_t fixed = 0;  // how many are fixed
  std::size_t lower_bound_bytes = 0;
  std::vector<std::uint32_t> times = {};  // when each step begins, and the last ends, in the nodes of the graph
  bool mirrored = false;                  // time was turned around: then they count back …
  std::uint32_t last = 0;                 // … from this node
};

struct PackTask {
  const Part& part;
  std::size_t below;  // a packing that is not below this is of no use
  const Patience& patience;
  std::size_t enough = 0;           // nobody asks for less
  std::uint64_t seed = 0;           // of what is left to chance
  std::size_t capacity = SIZE_MAX;  // what is above is of no use, even if it is below
  std::size_t threads = 1;          // that may search at once
};

// Buffers of a part of which strategies that are not near linear do less.
inline constexpr std::size_t kVeryMany = 200'000;

enum class PackEnd : std::uint8_t {
  done,
  above,          // what is not below is of no use
  too_much_live,  // it would take too long
  has_fixed,      // it cannot go around what is fixed
  too_many,       // it is for a few buffers only
  gave_up,        // after as many steps as it makes without a time limit
  out_of_time,
};
std::string_view to_note(PackEnd end) noexcept;  // for people; empty when it is done

// With `done` there is a packing, below what was asked.
struct PackAnswer {
  PackEnd end = PackEnd::done;
  Packing packing = {};
  std::size_t proved_bytes = 0;  // no packing is below this; with any end
};

// The least offset at or after `from` that is a multiple. REQUIRES: it fits, which the planner sees to.
constexpr std::size_t align_offset(std::size_t from, std::size_t alignment) noexcept { return (from + alignment - 1) & ~(alignment - 1); }

}  // namespace berth::internal::plan

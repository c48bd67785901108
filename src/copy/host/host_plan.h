// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/axes.h"
#include "berth/base/shape.h"
#include "copy/host/host_copy.h"

// How a host copy walks its two sides: computed first, then run. Axes may be walked in any order and direction,
// because the result does not depend on it. So they are sorted by the target's steps (largest outermost, none
// negative), those of size 1 are dropped, and neighbours that both sides walk as one are merged. The innermost
// axis then decides. Plain data; any thread.
//
//     rows    both sides are walked along it, with or without gaps: row after row
//     tiles   the source is denser along another axis, as in a transpose: blocks of both axes, each side along its own
namespace berth::internal::copy {

struct HostAxis {
  std::int64_t size;
  std::int64_t source_step;  // in elements
  std::int64_t target_step;  // positive where size > 1
};

struct HostPlan {
  enum class Kind : unsigned char { rows, tiles };

  Kind kind = Kind::rows;
  HostAxis row{1, 1, 1};     // the innermost axis of the target
  HostAxis column{1, 1, 1};  // for tiles: the axis along which the source is densest; otherwise of size 1
  // The other axes, outermost first. Entries past `rank` are uninitialised: clearing them would take longer than
  // a small copy.
  std::array<HostAxis, kMaxRank> axes;
  std::size_t rank = 0;  // of `axes`; the product of their sizes is the number of planes
  std::int64_t planes = 1;
  std::int64_t source_offset = 0;  // of the first element that is walked, in elements
  std::int64_t target_offset = 0;

  std::span<const HostAxis> outer() const noexcept { return {axes.data(), rank}; }
  bool is_dense() const noexcept { return row.source_step == 1 && row.target_step == 1; }
};

// REQUIRES: no dimension of size 0.
HostPlan plan_on_host(std::span<const std::int64_t> shape, std::span<const std::int64_t> source,
                      std::span<const std::int64_t> target) noexcept;

// Iterates over the planes of a plan and gives the offsets of each.
class PlaneWalk {
 public:
  PlaneWalk(const HostPlan& plan, std::int64_t plane) noexcept;

  std::int64_t source() const noexcept { return source_; }  // in elements
  std::int64_t target() const noexcept { return target_; }
  void next() noexcept;

 private:
  const HostPlan& plan_;
  std::int64_t source_;
  std::int64_t target_;
  base::AxisArray index_;
};

}  // namespace berth::internal::copy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/space/extent.h"
#include "memory/space/page_span.h"

// Cached memory as it would be if some of it had been cut out already, so that a plan can take several spans
// and leave the trees as they are:
//
//     tree      |  extent           |         |  extent  |
//     taken            [####]  [####]                [##]
//     walked    |  3   |    | 2|              |  1   |        downwards, what is left of an extent bit by bit
namespace berth::internal::memory {

// What a plan has taken: disjoint, by address.
class TakenSpans {
 public:
  static constexpr std::size_t kMost = 64;

  // REQUIRES: fewer than kMost; it overlaps none of the others.
  void add(const PageSpan& span) noexcept {
    std::size_t i = count_++;
    for (; i > 0 && spans_[i - 1].begin > span.begin; --i) spans_[i] = spans_[i - 1];
    spans_[i] = span;
  }
  std::size_t count() const noexcept { return count_; }
  const PageSpan& operator[](std::size_t i) const noexcept { return spans_[i]; }

 private:
  std::array<PageSpan, kMost> spans_;
  std::size_t count_ = 0;
};

// Walks what is left in a tree, from the highest address down: the spans that have at least so many bytes, of
// all extents or of those that have a whole page.
class FreeSpans {
 public:
  enum class Of : bool { all, whole_pages };

  // REQUIRES: least > 0; tree and taken stay as they are.
  FreeSpans(const ExtentTree& tree, const TakenSpans& taken, std::size_t least, Of which = Of::all) noexcept
      : tree_(tree), taken_(taken), least_(least), which_(which), above_(taken.count()) {
    enter_below(SIZE_MAX);
  }

  // The next one; an empty one when there is none.
  PageSpan next() noexcept {
    while (extent_ != nullptr) {
      const PageSpan left = cut_above();
      if (left.bytes() >= least_) return left;
      if (end_ <= extent_->begin) enter_below(extent_->begin);
    }
    return {};
  }

 private:
  void enter_below(std::size_t offset) noexcept {
    extent_ = which_ == Of::all ? tree_.last_below(offset, least_) : tree_.last_whole_below(offset);
    end_ = extent_ == nullptr ? 0 : extent_->end();
  }

  // What lies above the highest taken span of the rest of the extent, or all of the rest.
  PageSpan cut_above() noexcept {
    while (above_ > 0 && taken_[above_ - 1].begin >= end_) --above_;
    const bool cut = above_ > 0 && taken_[above_ - 1].end > extent_->begin;
    const PageSpan left{cut ? taken_[above_ - 1].end : extent_->begin, end_};
    end_ = cut ? taken_[above_ - 1].begin : extent_->begin;
    return left;
  }

  const ExtentTree& tree_;
  const TakenSpans& taken_;
  const std::size_t least_;
  const Of which_;
  std::size_t above_;         // taken spans from this one on lie above what is left to be walked
  const PoolExtent* extent_;  // is being walked
  std::size_t end_;           // of what is left of it
};

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "plan/pack/exact/buffer_set.h"

// Explanations for backjumping: for the lower bound of each buffer, the buffers whose placing or skipping
// implies it. When a branch fails for reasons that do not involve the last decision, the other side of that
// decision fails for the same reasons and is not searched; the search jumps back.
namespace berth::internal::plan::pack::exact {

class Reasons {
 public:
  explicit Reasons(std::size_t buffers) : reasons_(buffers) {}

  const BufferSet& operator[](std::size_t id) const noexcept { return reasons_[id]; }
  void set(std::size_t id, const BufferSet& reason) {
    trail_.emplace_back(id, reasons_[id]);
    reasons_[id] = reason;
  }

  // Backtracking: undoes everything set after a mark.
  std::size_t mark() const noexcept { return trail_.size(); }
  void undo(std::size_t to) {
    for (; trail_.size() > to; trail_.pop_back()) reasons_[trail_.back().first] = trail_.back().second;
  }

  void clear() {
    trail_.clear();
    for (BufferSet& reason : reasons_) reason.clear();
  }

 private:
  std::vector<BufferSet> reasons_;
  std::vector<std::pair<std::size_t, BufferSet>> trail_;  // previous values, for undo
};

}  // namespace berth::internal::plan::pack::exact

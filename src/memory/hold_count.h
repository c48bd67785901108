// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "os/process/fork.h"

// The number of holds on an allocator. A forked child has none: the threads that held stayed in the parent, and
// a Hold that the child inherited ends there without effect. Not thread-safe: its owner locks.
namespace berth::internal::memory {

class HoldCount {
 public:
  bool any() const noexcept { return count_ > 0 && !origin_.is_inherited(); }

  void begin() noexcept {
    if (origin_.is_inherited()) *this = {};
    ++count_;
  }

  // Returns true when this was the last.
  bool end() noexcept {
    if (!any()) return false;
    return --count_ == 0;
  }

 private:
  os::Origin origin_;
  std::uint64_t count_ = 0;
};

}  // namespace berth::internal::memory

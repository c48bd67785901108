// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "os/process/fork.h"

// How many holds an allocator is under. A forked child has none: the threads that held stayed in the parent, and a Hold that the child
// inherited ends there without effect. Not thread-safe: its owner locks.
namespace berth::internal::memory {

class HoldCount {
 public:
  bool any() const noexcept { return count_ > 0 && generation_ == os::fork_generation(); }

  void begin() noexcept {
    if (generation_ != os::fork_generation()) {
      generation_ = os::fork_generation();
      count_ = 0;
    }
    ++count_;
  }

  // Returns true when this was the last.
  bool end() noexcept {
    if (!any()) return false;
    return --count_ == 0;
  }

 private:
  std::uint64_t generation_ = os::fork_generation();
  std::uint64_t count_ = 0;
};

}  // namespace berth::internal::memory

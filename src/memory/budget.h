// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"

// How much memory may be committed, and how much is. Memory is claimed before the device is asked for it and
// given up after the device has it back, so that concurrent claims cannot exceed a limit together. Budgets are
// stacked, the process's below that of a pool, and that of a pool below those of its private pools: a claim
// succeeds at all of them, or at none.
//
//     used == what its owner has or is requesting + used of the budgets above it
//     used <= limit, unless the limit was lowered
//
// Any thread.
namespace berth::internal::memory {

class Budget {
 public:
  Budget(const Failure& refusal, std::size_t limit, Budget* below) noexcept : refusal_(refusal), below_(below), limit_(limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Returns nullptr when there was room in all of them; else the budget that had none, and nothing is claimed.
  [[nodiscard]] const Budget* claim(std::size_t bytes) noexcept {
    // Checked first, so that a claim that will be refused further down does not cause others to be refused
    // meanwhile.
    for (const Budget* budget = this; budget != nullptr; budget = budget->below_) {
      if (!budget->has_room(bytes)) return budget;
    }
    if (!claim_here(bytes)) return this;
    const Budget* const refused = below_ == nullptr ? nullptr : below_->claim(bytes);
    if (refused != nullptr) give_up_here(bytes);
    return refused;
  }
  void give_up(std::size_t bytes) noexcept {
    for (Budget* budget = this; budget != nullptr; budget = budget->below_) budget->give_up_here(bytes);
  }

  // For memory that moves between owners above the same budget.
  [[nodiscard]] bool claim_here(std::size_t bytes) noexcept {
    // relaxed, here and below: these counters guard no other memory.
    std::size_t used = used_.load(std::memory_order_relaxed);
    do {
      const std::size_t limit = limit_.load(std::memory_order_relaxed);
      if (used > limit || bytes > limit - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    std::size_t peak = peak_.load(std::memory_order_relaxed);
    while (used + bytes > peak && !peak_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
    }
    return true;
  }
  void give_up_here(std::size_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  bool has_room(std::size_t bytes) const noexcept {
    const std::size_t limit = this->limit();
    const std::size_t used = this->used();
    return used <= limit && bytes <= limit - used;
  }

  // How much could be claimed now.
  std::size_t room() const noexcept {
    std::size_t least = SIZE_MAX;
    for (const Budget* budget = this; budget != nullptr; budget = budget->below_) {
      const std::size_t limit = budget->limit();
      const std::size_t used = budget->used();
      const std::size_t here = used < limit ? limit - used : 0;
      least = here < least ? here : least;
    }
    return least;
  }

  void set_limit(std::size_t limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }
  std::size_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::size_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  const Failure& refusal() const noexcept { return refusal_; }
  Budget* below() const noexcept { return below_; }

 private:
  const Failure refusal_;
  Budget* const below_;
  std::atomic<std::size_t> limit_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> peak_{0};
};

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "share/claims.h"

// The memory that the operations of share/claims.h run on: words of a mapped file, which other processes change
// concurrently.
//
// Every access is sequentially consistent, on purpose: retiring an entry asks "is there a claim anywhere?" over
// many words, and the proof that the answer is right (see Retire) relies on a single total order of all
// accesses. On x86-64 only stores cost more for it; on ARM64 the cost is not measurable beside the system call
// that every ticket takes.
namespace berth::internal::share {

class Words {
 public:
  Words() noexcept = default;
  explicit Words(void* first) noexcept : first_(static_cast<Word*>(first)) {}

  Word load(std::uint32_t index) const noexcept { return at(index).load(); }
  void store(std::uint32_t index, Word value) const noexcept { at(index).store(value); }
  bool exchange_if(std::uint32_t index, Word expected, Word value) const noexcept {
    return at(index).compare_exchange_strong(expected, value);
  }
  void set_bits(std::uint32_t index, Word bits) const noexcept { at(index).fetch_or(bits); }
  void clear_bits(std::uint32_t index, Word bits) const noexcept { at(index).fetch_and(~bits); }
  void add(std::uint32_t index, Word value) const noexcept { at(index).fetch_add(value); }

 private:
  std::atomic_ref<Word> at(std::uint32_t index) const noexcept { return std::atomic_ref<Word>(first_[index]); }
  static_assert(std::atomic_ref<Word>::is_always_lock_free);  // a lock would be the process's own

  Word* first_ = nullptr;
};

}  // namespace berth::internal::share

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

#include "base/namespace.h"
#include "base/sanitizers.h"

// A relaxed atomic: a number that threads may read while another writes it, without ordering. Loads and stores
// are volatile accesses, which the supported compilers turn into one plain instruction of the number's size;
// for a relaxed std::atomic, gcc 12 computes each address in a separate instruction, which doubles the cost of
// the pool's hottest lines. ThreadSanitizer, which would report a race, gets the atomic.
namespace berth::internal::base {

template <std::unsigned_integral T>
class Relaxed {
 public:
  static_assert(sizeof(T) <= sizeof(void*));

  T load() const noexcept {
    if constexpr (kThreadSanitizer) return __atomic_load_n(&value_, __ATOMIC_RELAXED);
    return *static_cast<const volatile T*>(&value_);
  }
  void store(T value) noexcept {
    if constexpr (kThreadSanitizer)
      __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
    else
      *static_cast<volatile T*>(&value_) = value;
  }

  // An atomic read-modify-write: stores the new value if there is the expected one, and returns whether it did.
  bool replace(T expected, T desired) noexcept {
    return __atomic_compare_exchange_n(&value_, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }

  // An atomic read-modify-write: several threads may add at once.
  void add(std::make_signed_t<T> change) noexcept { __atomic_fetch_add(&value_, static_cast<T>(change), __ATOMIC_RELAXED); }

 private:
  T value_ = 0;
};

}  // namespace berth::internal::base

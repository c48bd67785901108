// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "base/namespace.h"

// A list of plain values that is nearly always short: up to kFew of them need no heap. One thread at a time.
namespace berth::internal::base {

template <class T, std::size_t kFew>
class Few {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>);

 public:
  // In a row; valid until the next one is added.
  std::span<T> all() noexcept { return many_.empty() ? std::span<T>(few_.data(), count_) : std::span<T>(many_); }
  std::span<const T> all() const noexcept { return many_.empty() ? std::span<const T>(few_.data(), count_) : std::span<const T>(many_); }
  std::size_t size() const noexcept { return all().size(); }
  bool empty() const noexcept { return all().empty(); }

  void push_back(const T& value) {
    if (many_.empty() && count_ < kFew) {
      few_[count_++] = value;
      return;
    }
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    many_.push_back(value);
  }

 private:
  std::array<T, kFew> few_{};
  std::size_t count_ = 0;  // in few_
  std::vector<T> many_;    // all of them, once there are more
};

}  // namespace berth::internal::base

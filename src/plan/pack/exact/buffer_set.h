// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// A set of buffers of one part, as a bit set.
namespace berth::internal::plan::pack::exact {

inline constexpr std::size_t kMostBuffers = 512;

class BufferSet {
 public:
  void add(std::size_t id) noexcept { words_[id / 64] |= std::uint64_t{1} << (id % 64); }
  void remove(std::size_t id) noexcept { words_[id / 64] &= ~(std::uint64_t{1} << (id % 64)); }
  bool has(std::size_t id) const noexcept { return ((words_[id / 64] >> (id % 64)) & 1) != 0; }
  void clear() noexcept { words_.fill(0); }
  void add_all() noexcept { words_.fill(~std::uint64_t{0}); }

  BufferSet& operator|=(const BufferSet& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  // Adds the intersection of a and b.
  void add_common(const BufferSet& a, const BufferSet& b) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= a.words_[i] & b.words_[i];
  }

 private:
  std::array<std::uint64_t, kMostBuffers / 64> words_{};
};

}  // namespace berth::internal::plan::pack::exact

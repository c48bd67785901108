// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/cell_map.h"

#include <algorithm>
#include <bit>

namespace berth::internal::memory {

std::uint32_t CellMap::next_free(std::uint32_t at) const noexcept {
  std::uint32_t word = at / kBits;
  std::uint64_t bits = ~is_used_[word] >> at % kBits << at % kBits;
  while (bits == 0) {
    if (++word == kWords) return kCells;
    bits = ~is_used_[word];
  }
  return word * kBits + static_cast<std::uint32_t>(std::countr_zero(bits));
}

std::uint32_t CellMap::next_used(std::uint32_t at) const noexcept {
  std::uint32_t word = at / kBits;
  std::uint64_t bits = is_used_[word] >> at % kBits << at % kBits;
  while (bits == 0) bits = is_used_[++word];  // the end is used
  return word * kBits + static_cast<std::uint32_t>(std::countr_zero(bits));
}

std::uint32_t CellMap::run_begin(std::uint32_t before) const noexcept {
  if (before == 0) return 0;
  std::uint32_t word = (before - 1) / kBits;
  std::uint64_t bits = is_used_[word] << (kBits - 1 - (before - 1) % kBits);
  if (bits != 0) return before - static_cast<std::uint32_t>(std::countl_zero(bits));
  while (word > 0) {
    bits = is_used_[--word];
    if (bits != 0) return (word + 1) * kBits - static_cast<std::uint32_t>(std::countl_zero(bits));
  }
  return 0;
}

void CellMap::flip(std::uint32_t first, std::uint32_t count) noexcept {
  while (count > 0) {
    const std::uint32_t here = std::min(count, kBits - first % kBits);
    is_used_[first / kBits] ^= ~std::uint64_t{0} >> (kBits - here) << first % kBits;
    first += here;
    count -= here;
  }
}

std::uint32_t CellMap::take(std::uint32_t count) noexcept {
  std::uint32_t longest = 0;
  for (std::uint32_t begin = next_free(0); begin < kCells;) {
    const std::uint32_t end = next_used(begin);
    if (end - begin >= count) {
      flip(begin, count);
      used_ += count;
      return begin;
    }
    longest = std::max(longest, end - begin);
    begin = next_free(end);
  }
  longest_ = longest;
  return kNone;
}

bool CellMap::extend(std::uint32_t end, std::uint32_t count) noexcept {
  if (count > kCells - end || next_used(end) < end + count) return false;
  flip(end, count);
  used_ += count;
  return true;
}

void CellMap::give(std::uint32_t first, std::uint32_t count) noexcept {
  flip(first, count);
  used_ -= count;
  longest_ = std::max(longest_, next_used(first) - run_begin(first));
}

}  // namespace berth::internal::memory

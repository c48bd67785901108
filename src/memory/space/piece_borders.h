// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/space/page_span.h"

// Where the pieces of committed memory begin, in a range whose device commits in pieces
// (BackendProperties::piece_bytes). One bit a page:
//
//     pages     | piece A       | B     | bare      | piece C       |
//     borders   1   0   0   0   1   0   1   ?   ?   1   0   0   0   1
//
// Where memory is committed, and at the page behind it, the bits are valid; elsewhere they are meaningless. Not
// thread-safe: the pool locks.
namespace berth::internal::memory {

class PieceBorders {
 public:
  // For a range of so many bytes. Throws bad_alloc.
  void open(std::size_t range_bytes, std::size_t page_bytes, std::size_t piece_bytes) {
    bits_.assign(range_bytes / page_bytes / 64 + 1, 0);
    page_ = page_bytes;
    piece_ = piece_bytes;
  }

  // [begin, begin + bytes) was committed by one call, or is one piece that was moved here.
  void committed(std::size_t begin, std::size_t bytes) noexcept {
    for (std::size_t at = begin; at < begin + bytes; at += page_) set(at, (at - begin) % piece_ == 0);
    set(begin + bytes, true);
  }

  // The last piece that lies wholly in [begin, end), where all is committed; an empty one when there is none.
  PageSpan last_within(std::size_t begin, std::size_t end) const noexcept {
    const std::size_t to = last_border(end / page_) * page_;
    if (to <= begin || to > end) return {};
    const std::size_t from = last_border(to / page_ - 1) * page_;
    return from >= begin ? PageSpan{from, to} : PageSpan{};
  }

  // The piece that an offset of committed memory lies in.
  PageSpan around(std::size_t offset) const noexcept {
    const std::size_t page = offset / page_;
    return {last_border(page) * page_, next_border(page + 1) * page_};
  }

 private:
  // The last border at a page or before it, and the first at a page or behind it.
  std::size_t last_border(std::size_t page) const noexcept {
    std::size_t at = page / 64;
    std::uint64_t word = bits_[at] << (63 - page % 64) >> (63 - page % 64);
    while (word == 0 && at > 0) word = bits_[--at];
    return word == 0 ? 0 : at * 64 + 63 - static_cast<std::size_t>(std::countl_zero(word));
  }
  std::size_t next_border(std::size_t page) const noexcept {
    std::size_t at = page / 64;
    if (at == bits_.size()) return page;
    std::uint64_t word = bits_[at] >> (page % 64) << (page % 64);
    while (word == 0 && at + 1 < bits_.size()) word = bits_[++at];
    return at * 64 + static_cast<std::size_t>(std::countr_zero(word));
  }
  bool is_border(std::size_t offset) const noexcept { return (bits_[offset / page_ / 64] >> (offset / page_ % 64) & 1) != 0; }
  void set(std::size_t offset, bool border) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (offset / page_ % 64);
    std::uint64_t& word = bits_[offset / page_ / 64];
    word = border ? word | bit : word & ~bit;
  }

  std::vector<std::uint64_t> bits_;  // one more than there are pages: for the border behind the last
  std::size_t page_ = 1;
  std::size_t piece_ = 1;
};

}  // namespace berth::internal::memory

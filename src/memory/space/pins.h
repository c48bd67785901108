// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "memory/space/page_span.h"
#include "memory/space/piece_borders.h"

// How much free memory is pinned: it lies in a piece of several pages of which another part is live, so that it can
// neither move nor return to the device. Counts, for each piece, the live bytes of extents that cover it in part:
//
//     extents   |   live    | free |live|       free        |
//     pieces    |  A   |    B      |     C     |     D      |
//     counted      -      2 of 3      1 of 3         -            pinned: a third of B, two of C
//
// A piece's borders stay while any of it is live. Not thread-safe: the pool locks.
namespace berth::internal::memory {

class Pins {
 public:
  // For a range of so many bytes. Throws bad_alloc.
  void open(std::size_t range_bytes, std::size_t page_bytes) {
    page_ = page_bytes;
    grains_.reset(static_cast<std::uint32_t*>(std::calloc(range_bytes / page_bytes + 1, sizeof(std::uint32_t))));
    if (grains_ == nullptr) throw std::bad_alloc();
  }

  // An extent becomes live, or free.
  void add(const PieceBorders& borders, const PageSpan& live) noexcept { count(borders, live, true); }
  void remove(const PieceBorders& borders, const PageSpan& live) noexcept { count(borders, live, false); }

  std::size_t bytes() const noexcept { return pinned_; }

 private:
  static constexpr std::size_t kGrain = 4096;  // of extents

  void count(const PieceBorders& borders, const PageSpan& live, bool add) noexcept {
    const PageSpan first = borders.around(live.begin);
    count_in(first, live, add);
    if (first.end < live.end) count_in(borders.around(live.end - 1), live, add);
  }
  void count_in(const PageSpan& piece, const PageSpan& live, bool add) noexcept {
    if (piece.bytes() == page_ || (live.begin <= piece.begin && piece.end <= live.end)) return;
    const std::size_t begin = live.begin > piece.begin ? live.begin : piece.begin;
    const std::size_t end = live.end < piece.end ? live.end : piece.end;
    std::uint32_t& grains = grains_[piece.begin / page_];
    const auto part = static_cast<std::uint32_t>((end - begin) / kGrain);
    pinned_ -= pinned_in(piece, grains);
    grains = add ? grains + part : grains - part;
    pinned_ += pinned_in(piece, grains);
  }
  static std::size_t pinned_in(const PageSpan& piece, std::uint32_t grains) noexcept {
    return grains == 0 ? 0 : piece.bytes() - grains * kGrain;
  }

  struct Free {
    void operator()(std::uint32_t* grains) const noexcept { std::free(grains); }
  };
  std::unique_ptr<std::uint32_t[], Free> grains_;  // by the piece's first page; pages are touched as pieces need them
  std::size_t page_ = 1;
  std::size_t pinned_ = 0;
};

}  // namespace berth::internal::memory

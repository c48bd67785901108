// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "berth/base/checked.h"
#include "berth/device/backend.h"
#include "memory/pool/space.h"

// Where memory goes that a pool gives up: to the device, to a lender, to who borrows.
namespace berth {

using namespace internal::memory;

// False when the device would not take it.
bool Space::decommit(PoolExtent* from, std::size_t begin, std::size_t end, To to) noexcept {
  if (!nodes_.reserve(Extents::kNodesPerCut)) return false;
  PoolExtent* const piece = part_of(begin).cut(from, begin, end - begin, ExtentState::transit);
  bool adopted = false;
  const Status done = os::unlocked(mutex_, [&] {
    adopted = to == To::lender && lender_ != nullptr && lender_->adopt(base_ + begin, end - begin);
    return adopted ? Status() : backend_.decommit(base_ + begin, end - begin);
  });
  if (!done) {
    part_of(begin).free_cached(piece, 0, 0);
    return false;
  }
  figures_.committed -= end - begin;
  if (adopted)
    budget_.give_up_here(end - begin);
  else
    budget_.give_up(end - begin);
  ++figures_.decommits;
  decay_.gave(end - begin);
  become_bare(piece);
  return true;
}

void Space::trim(std::size_t keep, std::size_t grain, std::size_t most_pieces) noexcept {
  if (base_ == nullptr) return;
  end_echoes();
  for (const std::size_t which : {1U, 0U}) {
    if (in_pieces()) {
      trim_pieces(*parts_[which], keep, most_pieces);
      continue;
    }
    std::size_t below = SIZE_MAX;  // everything above has been looked at: the lock is let go of in between
    while (cached_bytes() > keep && most_pieces > 0) {
      PoolExtent* e = parts_[which]->clean_tree().last(grain);
      while (e != nullptr && e->begin >= below) e = parts_[which]->clean_tree().previous(e, grain);
      if (e == nullptr) break;
      --most_pieces;
      below = e->begin;
      const std::size_t end = align_down(e->end(), grain);
      const std::size_t bytes = std::min(up(cached_bytes() - keep, grain), end - std::min(end, up(e->begin, grain)));
      if (bytes > 0 && !decommit(e, end - bytes, end, To::lender)) return;
    }
  }
}

// Piece by piece, from the highest address down.
void Space::trim_pieces(Extents& part, std::size_t keep, std::size_t& most_pieces) noexcept {
  const std::size_t page = settings_.page_bytes;
  std::size_t below = SIZE_MAX;  // everything above has been looked at: the lock is let go of in between
  while (cached_bytes() > keep && most_pieces > 0) {
    PoolExtent* e = part.clean_tree().last(page);
    while (e != nullptr && e->begin >= below) e = part.clean_tree().previous(e, page);
    if (e == nullptr) return;
    const PieceSpan piece = borders_.last_within(e->begin, std::min(e->end(), below));
    below = piece.bytes() == 0 ? e->begin : piece.begin;
    if (piece.bytes() == 0) continue;
    --most_pieces;
    if (!decommit(e, piece.begin, piece.end, To::lender)) return;
  }
}

void Space::trim_pieces_around(std::size_t begin, std::size_t end) noexcept {
  for (std::size_t at = begin; at < end;) {
    PoolExtent* const e = part_of(at).clean_tree().covering(at);
    if (e == nullptr) return;  // in use after all, or a stream may still be at work on it
    const PieceSpan piece = borders_.around(at);
    at = piece.end;
    if (e->begin <= piece.begin && piece.end <= e->end() && !decommit(e, piece.begin, piece.end, To::device)) return;
  }
}

void Space::trim_around(std::size_t begin, std::size_t bytes) noexcept {
  end_echoes();
  if (in_pieces()) return trim_pieces_around(begin, begin + bytes);
  PoolExtent* const e = part_of(begin).clean_tree().covering(begin);
  if (e == nullptr) return;  // in use after all, or a stream may still be at work on it
  const std::size_t unit = backend_.properties().unit_bytes;
  const std::size_t from = up(std::max(e->begin, align_down(begin, settings_.page_bytes)), unit);
  const std::size_t to = align_down(std::min(e->end(), up(begin + bytes, settings_.page_bytes)), unit);
  if (from < to) decommit(e, from, to, To::device);
}

std::size_t Space::lend(std::span<const std::size_t> wanted, std::span<Loan> loans) noexcept {
  std::size_t count = 0;
  for (const std::size_t bytes : wanted) {
    for (std::size_t lent = 0; lent < bytes && count < loans.size();) {
      if (!nodes_.reserve(Extents::kNodesPerCut)) return count;
      PoolExtent* const source = find_source(bytes - lent, false, Longer::no, 0);
      if (source == nullptr) break;
      loans[count++] = {.extent = source, .address = base_ + source->begin, .bytes = source->bytes};
      lent += source->bytes;
    }
  }
  return count;
}

void Space::settle(std::span<const Loan> loans) noexcept {
  for (const Loan& loan : loans) {
    if (loan.end == Loan::End::kept) {
      part_of(loan.extent->begin).free_cached(loan.extent, 0, 0);
      continue;
    }
    // What was moved stays claimed here, on behalf of who has it now.
    figures_.committed -= loan.bytes;
    if (loan.end == Loan::End::lost) budget_.give_up(loan.bytes);
    ++figures_.decommits;
    ++figures_.moves;
    become_bare(loan.extent);
  }
  decay_.saw(cached_bytes());
}

bool Space::adopt(std::byte* pages, std::size_t bytes) noexcept {
  if (!backend_.properties().abilities.move || !nodes_.reserve(Extents::kNodesPerCut)) return false;
  Extents& part = *parts_[1];
  PoolExtent* const bare = part.bare_tree().first(bytes);
  if (bare == nullptr) return false;
  const std::size_t in_pages = up(bare->begin, settings_.page_bytes);
  const std::size_t begin = in_pages + bytes <= bare->end() ? in_pages : bare->begin;
  PoolExtent* const place = part.cut(bare, begin, bytes, ExtentState::transit);
  const Status moved = os::unlocked(mutex_, [&] { return backend_.move(pages, base_ + begin, bytes); });
  if (!moved) {
    part.free_bare(place);
    return false;
  }
  figures_.committed += bytes;
  figures_.peak_committed = std::max(figures_.peak_committed, figures_.committed);
  ++figures_.moves;
  if (in_pieces()) borders_.committed(begin, bytes);
  part.free_cached(place, 0, 0);
  return true;
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/ranges.h"

#include "plan/pack/packer.h"

namespace berth::internal::plan {

std::uint32_t Ranges::add_space(std::size_t bytes) {
  const std::uint32_t at = new_piece();
  pieces_[at] = {.end = bytes, .space = spaces_};
  add_free(at);
  return spaces_++;
}

std::optional<Ranges::Place> Ranges::place(std::uint32_t index, const PackBuffer& buffer, std::uint32_t dies, Choice choice) {
  const std::uint32_t at = choice == Choice::smallest ? smallest(buffer) : together(buffer, dies);
  if (at == kNone) return std::nullopt;
  const std::size_t offset = align_offset(pieces_[at].offset, buffer.alignment);
  drop_free(at);
  if (offset != pieces_[at].offset) {
    const std::uint32_t below = insert_before(at, pieces_[at].offset, offset);
    add_free(below);
  }
  pieces_[at].offset = offset;
  std::uint32_t taken = at;
  if (pieces_[at].end - offset > buffer.bytes) {
    // Split: the piece keeps the rest, so that an endless one stays last.
    taken = insert_before(at, offset, offset + buffer.bytes);
    pieces_[at].offset = offset + buffer.bytes;
    add_free(at);
  }
  pieces_[taken].dies = dies;
  piece_of_[index] = taken;
  return Place{pieces_[taken].space, offset};
}

void Ranges::release(std::uint32_t index) {
  const std::uint32_t at = piece_of_[index];
  pieces_[at].dies = kFree;
  if (const std::uint32_t below = pieces_[at].below; below != kNone && pieces_[below].dies == kFree) {
    drop_free(below);
    pieces_[at].offset = pieces_[below].offset;
    unlink(below);
  }
  if (const std::uint32_t above = pieces_[at].above; above != kNone && pieces_[above].dies == kFree) {
    drop_free(above);
    pieces_[at].end = pieces_[above].end;
    unlink(above);
  }
  add_free(at);
}

Ranges::FreeRange Ranges::as_free(std::uint32_t at) const {
  const Piece& piece = pieces_[at];
  return {piece.end - piece.offset, piece.space, at, piece.offset};
}

std::uint32_t Ranges::new_piece() {
  if (spare_.empty()) {
    pieces_.emplace_back();
    return static_cast<std::uint32_t>(pieces_.size() - 1);
  }
  const std::uint32_t fresh = spare_.back();
  spare_.pop_back();
  return fresh;
}

std::uint32_t Ranges::insert_before(std::uint32_t at, std::size_t offset, std::size_t end) {
  const std::uint32_t fresh = new_piece();
  pieces_[fresh] = {.offset = offset, .end = end, .space = pieces_[at].space, .below = pieces_[at].below, .above = at};
  if (pieces_[fresh].below != kNone) pieces_[pieces_[fresh].below].above = fresh;
  pieces_[at].below = fresh;
  return fresh;
}

void Ranges::unlink(std::uint32_t at) {
  const Piece& piece = pieces_[at];
  if (piece.below != kNone) pieces_[piece.below].above = piece.above;
  if (piece.above != kNone) pieces_[piece.above].below = piece.below;
  spare_.push_back(at);
}

namespace {

bool holds(std::size_t offset, std::size_t bytes, const PackBuffer& buffer) {
  const std::size_t skipped = align_offset(offset, buffer.alignment) - offset;
  return skipped <= bytes && bytes - skipped >= buffer.bytes;
}

}  // namespace

std::uint32_t Ranges::smallest(const PackBuffer& buffer) const {
  // None of many ranges that are large enough may be aligned: a larger one, by an alignment, holds it in any case.
  constexpr int kCandidates = 64;
  auto at = of_at_least(buffer.bytes);
  for (int seen = 0; seen < kCandidates && at != free_.end(); ++seen, ++at)
    if (holds(at->offset, at->bytes, buffer)) return at->piece;
  if (at != free_.end()) at = of_at_least(buffer.bytes + buffer.alignment - 1);
  return at == free_.end() ? kNone : at->piece;
}

std::uint32_t Ranges::together(const PackBuffer& buffer, std::uint32_t dies) const {
  constexpr int kCandidates = 8;
  const std::uint32_t first = smallest(buffer);
  if (first == kNone) return kNone;
  const FreeRange smallest_range = as_free(first);
  if (smallest_range.bytes == buffer.bytes) return first;
  std::uint32_t best = first;
  std::uint32_t least = distance(first, dies);
  int seen = 0;
  for (auto at = free_.upper_bound(smallest_range); at != free_.end() && seen < kCandidates && at->bytes < kEndlessSpace / 2;
       ++at, ++seen) {
    if (!holds(at->offset, at->bytes, buffer)) continue;
    const std::uint32_t far = distance(at->piece, dies);
    if (far < least) {
      least = far;
      best = at->piece;
    }
  }
  return best;
}

// The distance in time to the end of the buffer below a free range.
std::uint32_t Ranges::distance(std::uint32_t at, std::uint32_t dies) const {
  const std::uint32_t below = pieces_[at].below;
  if (below == kNone) return kNone;
  const std::uint32_t other = pieces_[below].dies;
  return other > dies ? other - dies : dies - other;
}

}  // namespace berth::internal::plan

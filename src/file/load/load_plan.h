// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/base/dtype.h"

// How the tensors of files are split into pieces that several threads load, as data: a pure function of
// numbers, so that it can be printed, compared and tested without a file. A piece is one contiguous run of
// bytes of one file: a part of a large tensor, or many small tensors.
//
//     file:    | a a a a a a a a a a | b | c | d |     gap     | e |         four of these fit into a piece
//     pieces:  |   1   |   2   |      3      | 4 |             | 5 |
//
// A tensor that fits into a piece is never split. Larger ones are split at multiples of a piece from their
// first element, so that the targets of two threads do not meet within a page. A gap between tensors ends a
// piece.
namespace berth::internal::file::load {

// Elements of a file, with their dtype in the file, in host memory and at the target. All three may be the
// same.
struct FileTensor {
  std::size_t file = 0;      // index of the file
  std::uint64_t offset = 0;  // of the first element
  std::size_t elements = 0;
  DType in_file = DType::u8;
  DType from_host = DType::u8;  // dtype in host memory: the target, or the staging buffer
  DType at_target = DType::u8;

  std::size_t file_bytes() const noexcept { return elements * size_bytes(in_file); }
};

// Elements [first, first + count) of a tensor.
struct Part {
  std::size_t tensor = 0;
  std::size_t first = 0;
  std::size_t count = 0;

  friend bool operator==(const Part&, const Part&) = default;
};

// Parts [begin, end) of the plan, which are contiguous in the file from `offset` on.
struct Piece {
  std::size_t file = 0;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;  // of the file
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const Piece&, const Piece&) = default;
};

struct LoadPlan {
  std::vector<Part> parts;
  std::vector<Piece> pieces;
  std::size_t bytes = 0;  // the sum over the pieces

  std::span<const Part> parts_of(const Piece& piece) const noexcept {
    return std::span(parts).subspan(piece.begin, piece.end - piece.begin);
  }
};

// Alignment of parts in staging.
inline constexpr std::size_t kPartAlignment = 64;
constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

// The parts of a piece take at most `piece_bytes` in any of their dtypes, including padding. Empty tensors are
// in no piece. Tensors may be in any order, and may overlap in the file. REQUIRES: piece_bytes is a multiple of
// kPartAlignment, and not 0; the tensors' bytes, and their sum, do not overflow.
LoadPlan plan_load(std::span<const FileTensor> tensors, std::size_t piece_bytes);

}  // namespace berth::internal::file::load

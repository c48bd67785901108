// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/base/dtype.h"

// How tensors of files are cut into pieces that several threads bring in, as data: computed from numbers alone, and printed, compared and
// tested without a file. A piece is one run of bytes of one file: a part of a large tensor, or many small ones.
//
//     file:    | a a a a a a a a a a | b | c | d |     gap     | e |         four of these fit into a piece
//     pieces:  |   1   |   2   |      3      | 4 |             | 5 |
//
// A tensor that fits into a piece is never cut, so only large ones are, at multiples of a piece from their first element: there the pages of
// two threads' targets do not meet. A gap between tensors ends a piece.
namespace berth::internal::file::load {

// Elements of one dtype in a file, which the host passes on in a second, and which end up in a third. All three may be the same.
struct FileTensor {
  std::size_t file = 0;      // which of the files
  std::uint64_t offset = 0;  // of the first element
  std::size_t elements = 0;
  DType in_file = DType::u8;
  DType from_host = DType::u8;  // what host memory gets: the target, or what is sent to a device
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

// Parts [begin, end) of the plan, which lie one behind the other from `offset` on.
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
  std::size_t bytes = 0;  // of the files: the sum over the pieces

  std::span<const Part> parts_of(const Piece& piece) const noexcept {
    return std::span(parts).subspan(piece.begin, piece.end - piece.begin);
  }
};

// Parts begin at multiples of this in staging.
inline constexpr std::size_t kPartAlignment = 64;
constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

// The parts of a piece take at most `piece_bytes` in any of their dtypes, padding included. Empty tensors are in no piece. Tensors may come
// in any order, and may overlap in the file. REQUIRES: piece_bytes is a multiple of kPartAlignment, and not 0; the tensors' bytes, and the
// sum of them, do not overflow.
LoadPlan plan_load(std::span<const FileTensor> tensors, std::size_t piece_bytes);

}  // namespace berth::internal::file::load

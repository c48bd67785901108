// SPDX-License-Identifier: Apache-2.0
#include "copy/host/stream_row.h"

#include <algorithm>
#include <cstdint>

namespace berth::internal::copy {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{8} << 10;     // of the target: together with their source they
                                                              // stay in the L1 cache
constexpr std::size_t kLeastRowBytes = std::size_t{4} << 10;  // of a row

}  // namespace

bool StreamRow::is_worth(const Conversion& conversion, std::size_t row_elements) noexcept {
  const std::size_t size = size_bytes(conversion.to);
  return !conversion.by_reference && 2 * size >= size_bytes(conversion.from) && row_elements >= kLeastRowBytes / size;
}

void StreamRow::operator()(const std::byte* source, std::byte* target, std::size_t count) const noexcept {
  if (conversion_.is_copy())
    stream_runs_(source, 0, target, 0, 1, count * size_bytes(conversion_.to), {});
  else
    convert(source, target, count);
  flush_();
}

// Starts at a cache-line boundary of the target, and alternates between the first half and the second, so that
// the hardware prefetches both at the same time.
void StreamRow::convert(const std::byte* source, std::byte* target, std::size_t count) const noexcept {
  const std::size_t from = size_bytes(conversion_.from);
  const std::size_t to = size_bytes(conversion_.to);
  const std::size_t piece = kPieceBytes / to;
  const std::size_t before = (0 - reinterpret_cast<std::uintptr_t>(target)) % kLineBytes / to;
  std::size_t at = std::min(before, count);
  convert_piece(source, target, at);
  const std::size_t half = (count - at) / (2 * piece) * piece;
  for (const std::size_t end = at + half; at < end; at += piece) {
    convert_piece(source + at * from, target + at * to, piece);
    convert_piece(source + (half + at) * from, target + (half + at) * to, piece);
  }
  for (at += half; at < count; at += piece) convert_piece(source + at * from, target + at * to, std::min(piece, count - at));
}

void StreamRow::convert_piece(const std::byte* source, std::byte* target, std::size_t count) const noexcept {
  alignas(kLineBytes) std::byte converted[kPieceBytes];
  conversion_.run(source, converted, count);
  stream_runs_(converted, 0, target, 0, 1, count * size_bytes(conversion_.to), {});
}

}  // namespace berth::internal::copy

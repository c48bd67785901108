// SPDX-License-Identifier: Apache-2.0
// SIMD gathers, scatters and transposes. Included once for each instruction set, in a namespace of its own.
#if defined(BERTH_COPY_KERNELS_MOVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BERTH_COPY_KERNELS_MOVES_INL_H_
#undef BERTH_COPY_KERNELS_MOVES_INL_H_
#else
#define BERTH_COPY_KERNELS_MOVES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "copy/kernels/kernels.h"
#include "copy/kernels/plain_moves.h"
#include "copy/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace berth::internal::copy::HWY_NAMESPACE {

// An unsigned integer of an element's size, and 128-bit vectors of it, which every instruction set has.
template <std::size_t Size>
using Lane = std::conditional_t<Size == 1, std::uint8_t,
                                std::conditional_t<Size == 2, std::uint16_t, std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>>;
template <std::size_t Size>
using Tag = hn::FixedTag<Lane<Size>, 16 / Size>;
template <std::size_t Size>
using Vec = hn::Vec<Tag<Size>>;
using Bytes = hn::FixedTag<std::uint8_t, 16>;

// Loaded and stored as bytes, which need no alignment.
template <std::size_t Size>
HWY_INLINE Vec<Size> load(const std::byte* from) {
  return hn::BitCast(Tag<Size>(), hn::LoadU(Bytes(), reinterpret_cast<const std::uint8_t*>(from)));
}
template <class V>
HWY_INLINE void store(V v, std::byte* to) {
  hn::StoreU(hn::BitCast(Bytes(), v), Bytes(), reinterpret_cast<std::uint8_t*>(to));
}

// ---- Transposes. A square with as many rows as a vector has lanes is transposed by interleaving its first
// half of rows with its second, log2(rows) times:
//
//     abcd efgh ijkl mnop → aibj ckdl emfn gohp → aeim bfjn cgko dhlp

template <std::size_t Size>
constexpr std::size_t kSide = 16 / Size;

template <std::size_t Size, class V>
HWY_INLINE void transpose_square(V (&rows)[kSide<Size>]) {
  const hn::DFromV<V> d;
  constexpr std::size_t kHalf = kSide<Size> / 2;
  for (std::size_t round = 1; round < kSide<Size>; round *= 2) {
    V shuffled[kSide<Size>];
    for (std::size_t i = 0; i < kHalf; ++i) {
      shuffled[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + kHalf]);
      shuffled[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + kHalf]);
    }
    for (std::size_t i = 0; i < kSide<Size>; ++i) rows[i] = shuffled[i];
  }
}

// Longer vectors are shuffled within 128-bit blocks. So each block holds a row of another square, the one
// below, and the transposed squares are side by side in the target.
template <class D>
HWY_INLINE hn::Vec<D> load_squares(D d, const std::byte* source, std::size_t below) {
  const hn::Repartition<std::uint8_t, D> bytes;
  const auto square = [&](std::size_t i)
                          HWY_ATTR { return hn::LoadDup128(bytes, reinterpret_cast<const std::uint8_t*>(source + i * below)); };
  constexpr std::size_t kSquares = hn::MaxLanes(bytes) / 16;
  static_assert(kSquares == 1 || kSquares == 2 || kSquares == 4);
  if constexpr (kSquares == 1) {
    return hn::BitCast(d, square(0));
  } else if constexpr (kSquares == 2) {
    return hn::BitCast(d, hn::OddEvenBlocks(square(1), square(0)));
  } else {
    const auto upper = hn::OddEvenBlocks(square(3), square(2));
    return hn::BitCast(d, hn::ConcatUpperLower(bytes, upper, hn::OddEvenBlocks(square(1), square(0))));
  }
}

// How many vectors of squares, one below the other, are transposed before any is stored: as many as fill a
// cache line of each row of the target, limited by the number of registers.
template <std::size_t Size>
constexpr std::size_t kStack = std::min(kLineBytes / kBlock, 16 / kSide<Size>);

template <std::size_t Size, std::size_t Stack, class D>
HWY_INLINE void transpose_stack(D d, const std::byte* source, std::size_t columns, std::byte* target, std::ptrdiff_t stride) {
  constexpr std::size_t kRows = hn::MaxLanes(D());  // of a vector of squares
  hn::Vec<D> stack[Stack][kSide<Size>];
  for (std::size_t k = 0; k < Stack; ++k) {
    for (std::size_t i = 0; i < kSide<Size>; ++i)
      stack[k][i] = load_squares(d, source + (k * kRows + i) * columns * Size, kSide<Size> * columns * Size);
    transpose_square<Size>(stack[k]);
  }
  const hn::Repartition<std::uint8_t, D> bytes;
  for (std::size_t i = 0; i < kSide<Size>; ++i, target += stride) {
    for (std::size_t k = 0; k < Stack; ++k)
      hn::StoreU(hn::BitCast(bytes, stack[k][i]), bytes, reinterpret_cast<std::uint8_t*>(target) + k * kRows * Size);
  }
}

// For at least a square's number of rows and columns. The last square of a line overlaps the one before it, so
// that there is no tail.
template <std::size_t Size>
HWY_ATTR void transpose_squares(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns, std::ptrdiff_t stride) {
  using Long = hn::Repartition<Lane<Size>, D8>;
  constexpr std::size_t kRows = kStack<Size> * hn::MaxLanes(Long());
  for (std::size_t c = 0; c < columns; c += kSide<Size>) {
    const std::size_t column = c + kSide<Size> <= columns ? c : columns - kSide<Size>;
    const std::byte* const from = source + column * Size;
    std::byte* const to = target + static_cast<std::ptrdiff_t>(column) * stride;
    std::size_t row = 0;
    for (; row + kRows <= rows; row += kRows)
      transpose_stack<Size, kStack<Size>>(Long(), from + row * columns * Size, columns, to + row * Size, stride);
    for (; row < rows; row += kSide<Size>) {
      const std::size_t first = row + kSide<Size> <= rows ? row : rows - kSide<Size>;
      transpose_stack<Size, 1>(Tag<Size>(), from + first * columns * Size, columns, to + first * Size, stride);
    }
  }
}

// For fewer rows than a square has: what is stored past the end of a short target row is overwritten by the
// rows that follow; the last ones, which have none after them, are left to the scalar loop.
template <std::size_t Size>
HWY_ATTR std::size_t transpose_few_rows(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns) {
  std::size_t column = 0;
  for (; (columns - column) * rows >= kSide<Size> * rows + kSide<Size>; column += kSide<Size>) {
    Vec<Size> square[kSide<Size>];
    for (std::size_t i = 0; i < kSide<Size>; ++i)
      square[i] = i < rows ? load<Size>(source + (i * columns + column) * Size) : hn::Zero(Tag<Size>());
    transpose_square<Size>(square);
    for (std::size_t i = 0; i < kSide<Size>; ++i) store(square[i], target + (column + i) * rows * Size);
  }
  return column;
}

// For fewer columns: what is loaded past the end of a short source row is not stored. Again the last rows are
// left to the scalar loop.
template <std::size_t Size>
HWY_ATTR std::size_t transpose_few_columns(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns,
                                           std::ptrdiff_t stride) {
  std::size_t row = 0;
  for (; (rows - row) * columns >= kSide<Size> * columns + kSide<Size>; row += kSide<Size>) {
    Vec<Size> square[kSide<Size>];
    for (std::size_t i = 0; i < kSide<Size>; ++i) square[i] = load<Size>(source + (row + i) * columns * Size);
    transpose_square<Size>(square);
    for (std::size_t i = 0; i < columns; ++i) store(square[i], target + static_cast<std::ptrdiff_t>(i) * stride + row * Size);
  }
  return row;
}

// Two, three or four rows become pairs, triples or quadruples, and back, with interleaving loads and stores.
template <std::size_t Size, std::size_t Count>
HWY_ATTR std::size_t interleave(const std::byte* source, std::byte* target, std::size_t columns) {
  const Tag<Size> d;
  auto* const to = reinterpret_cast<Lane<Size>*>(target);
  std::size_t at = 0;
  for (; at + kSide<Size> <= columns; at += kSide<Size>) {
    const auto row = [&](std::size_t i) HWY_ATTR { return load<Size>(source + (i * columns + at) * Size); };
    if constexpr (Count == 2) hn::StoreInterleaved2(row(0), row(1), d, to + at * 2);
    if constexpr (Count == 3) hn::StoreInterleaved3(row(0), row(1), row(2), d, to + at * 3);
    if constexpr (Count == 4) hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, to + at * 4);
  }
  return at;
}

template <std::size_t Size, std::size_t Count>
HWY_INLINE void load_interleaved(const std::byte* source, Vec<Size> (&parts)[4]) {
  const Tag<Size> d;
  const auto* const from = reinterpret_cast<const Lane<Size>*>(source);
  if constexpr (Count == 2) hn::LoadInterleaved2(d, from, parts[0], parts[1]);
  if constexpr (Count == 3) hn::LoadInterleaved3(d, from, parts[0], parts[1], parts[2]);
  if constexpr (Count == 4) hn::LoadInterleaved4(d, from, parts[0], parts[1], parts[2], parts[3]);
}

template <std::size_t Size, std::size_t Count>
HWY_ATTR std::size_t deinterleave(const std::byte* source, std::byte* target, std::size_t rows, std::ptrdiff_t stride) {
  std::size_t at = 0;
  for (; at + kSide<Size> <= rows; at += kSide<Size>) {
    Vec<Size> parts[4];
    load_interleaved<Size, Count>(source + at * Count * Size, parts);
    for (std::size_t i = 0; i < Count; ++i) store(parts[i], target + static_cast<std::ptrdiff_t>(i) * stride + at * Size);
  }
  return at;
}

// Transposes few rows into a contiguous target; returns how many columns were done.
template <std::size_t Size>
HWY_ATTR std::size_t start_few_rows(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns) {
  switch (rows) {
    case 2: return interleave<Size, 2>(source, target, columns);
    case 3: return interleave<Size, 3>(source, target, columns);
    case 4: return interleave<Size, 4>(source, target, columns);
    default: return transpose_few_rows<Size>(source, target, rows, columns);
  }
}

// Transposes few columns; returns how many rows were done.
template <std::size_t Size>
HWY_ATTR std::size_t start_few_columns(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns,
                                       std::ptrdiff_t stride) {
  switch (columns) {
    case 2: return deinterleave<Size, 2>(source, target, rows, stride);
    case 3: return deinterleave<Size, 3>(source, target, rows, stride);
    case 4: return deinterleave<Size, 4>(source, target, rows, stride);
    default: return transpose_few_columns<Size>(source, target, rows, columns, stride);
  }
}

template <std::size_t Size>
HWY_ATTR void transpose(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns, std::ptrdiff_t stride) noexcept {
  if (rows >= kSide<Size> && columns >= kSide<Size>) return transpose_squares<Size>(source, target, rows, columns, stride);
  std::size_t first_row = 0;
  std::size_t first_column = 0;
  if (columns < kSide<Size> && rows >= kSide<Size>)
    first_row = start_few_columns<Size>(source, target, rows, columns, stride);
  else if (rows > 1 && stride == static_cast<std::ptrdiff_t>(rows * Size))
    first_column = start_few_rows<Size>(source, target, rows, columns);
  for (std::size_t column = first_column; column < columns; ++column) {
    std::byte* const to = target + static_cast<std::ptrdiff_t>(column) * stride;
    for (std::size_t row = first_row; row < rows; ++row) std::memcpy(to + row * Size, source + (row * columns + column) * Size, Size);
  }
}

// Elements of 128 bits need no shuffle. Writes one row of the target at a time, by cache lines.
HWY_ATTR inline void transpose_vectors(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns,
                                       std::ptrdiff_t stride) noexcept {
  const std::size_t pitch = columns * 16;
  for (std::size_t column = 0; column < columns; ++column, source += 16, target += stride) {
    const std::byte* from = source;
    std::byte* to = target;
    std::size_t row = 0;
    for (; row + 4 <= rows; row += 4, from += 4 * pitch, to += 64) {
      const auto a = load<1>(from);
      const auto b = load<1>(from + pitch);
      const auto c = load<1>(from + 2 * pitch);
      const auto d = load<1>(from + 3 * pitch);
      store(a, to);
      store(b, to + 16);
      store(c, to + 32);
      store(d, to + 48);
    }
    for (; row < rows; ++row, from += pitch, to += 16) store(load<1>(from), to);
  }
}

// The last `Shift` bytes of one vector, followed by the first bytes of another.
template <std::size_t Shift>
HWY_INLINE Vec<1> join(Vec<1> before, Vec<1> v) {
  if constexpr (Shift == 0)
    return v;
  else
    return hn::CombineShiftRightBytes<16 - Shift>(Bytes(), v, before);
}

template <std::size_t Shift>
HWY_INLINE void store_line(Vec<1> before, Vec<1> a, Vec<1> b, Vec<1> c, Vec<1> d, std::byte* line) {
  store(join<Shift>(before, a), line);
  store(join<Shift>(a, b), line + 16);
  store(join<Shift>(b, c), line + 32);
  store(join<Shift>(c, d), line + 48);
}

// One row of the target, from `rows` vectors that are `pitch` bytes apart. It begins `begun` bytes into a cache
// line, and so `Shift` bytes into a vector of that line.
template <std::size_t Shift>
HWY_INLINE void transpose_row_to_lines(const std::byte* source, std::size_t pitch, std::size_t rows, std::byte* target, std::size_t begun,
                                       Seam seam) {
  const auto vector = [&](std::size_t i) HWY_ATTR { return load<1>(source + i * pitch); };
  std::byte* const end = target + rows * 16;
  std::byte* line = target - begun;
  std::size_t next = 0;             // the first vector that is not written yet
  auto before = hn::Zero(Bytes());  // the one before it
  if (begun != 0 && seam.before) {
    const std::size_t kept = begun / 16;  // whole vectors of this line among the saved ones; one more precedes
                                          // them
    const std::byte* const first = seam.ends + kLineBytes - (kept + 1) * 16;
    const auto at = [&](std::size_t i) HWY_ATTR { return load<1>(i < kept ? first + (i + 1) * 16 : source + (i - kept) * pitch); };
    store_line<Shift>(load<1>(first), at(0), at(1), at(2), at(3), line);
    next = 4 - kept;
    line += kLineBytes;
  } else if (begun != 0) {
    line += kLineBytes;
    for (; next < rows && target + next * 16 < line; ++next) store(vector(next), target + next * 16);
  }
  if (next != 0) before = vector(next - 1);
  for (; line + kLineBytes <= end; line += kLineBytes, next += 4) {
    store_line<Shift>(before, vector(next), vector(next + 1), vector(next + 2), vector(next + 3), line);
    before = vector(next + 3);
  }
  if (seam.after) {
    for (std::size_t i = 0; i < 4; ++i) store(vector(rows - 4 + i), seam.ends + i * 16);
  } else if (line < end) {
    for (std::size_t i = static_cast<std::size_t>(line - target) / 16; i < rows; ++i) store(vector(i), target + i * 16);
  }
}

HWY_ATTR inline void transpose_to_lines(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns,
                                        std::ptrdiff_t stride, Seam seam) noexcept {
  for (std::size_t column = 0; column < columns; ++column, source += 16, target += stride) {
    const std::size_t begun = reinterpret_cast<std::uintptr_t>(target) % kLineBytes;
    const Seam own = seam.from_run(column);
    switch (begun % 16) {
      case 4: transpose_row_to_lines<4>(source, columns * 16, rows, target, begun, own); break;
      case 8: transpose_row_to_lines<8>(source, columns * 16, rows, target, begun, own); break;
      case 12: transpose_row_to_lines<12>(source, columns * 16, rows, target, begun, own); break;
      default: transpose_row_to_lines<0>(source, columns * 16, rows, target, begun, own);
    }
  }
}

// Interleaves one vector of each of four rows. (By shuffles: instructions that store four vectors interleaved
// are slower.)
template <std::size_t Size>
HWY_INLINE void interleave_four(const std::byte* source, std::ptrdiff_t stride, std::byte* target) {
  const Tag<Size> d;
  const auto first = load<Size>(source);
  const auto second = load<Size>(source + stride);
  const auto third = load<Size>(source + 2 * stride);
  const auto fourth = load<Size>(source + 3 * stride);
  const auto odd_lower = hn::InterleaveLower(d, first, third);
  const auto odd_upper = hn::InterleaveUpper(d, first, third);
  const auto even_lower = hn::InterleaveLower(d, second, fourth);
  const auto even_upper = hn::InterleaveUpper(d, second, fourth);
  store(hn::InterleaveLower(d, odd_lower, even_lower), target);
  store(hn::InterleaveUpper(d, odd_lower, even_lower), target + 16);
  store(hn::InterleaveLower(d, odd_upper, even_upper), target + 32);
  store(hn::InterleaveUpper(d, odd_upper, even_upper), target + 48);
}

template <std::size_t Size>
HWY_ATTR void interleave_fours(const std::byte* source, std::ptrdiff_t stride, std::byte* target, std::size_t rows, std::size_t columns,
                               std::ptrdiff_t ahead) noexcept {
  const std::size_t bytes = columns * Size;
  for (; rows >= 4; rows -= 4, source += 4 * stride, target += 4 * bytes) {
    const std::uintptr_t next = reinterpret_cast<std::uintptr_t>(source) + static_cast<std::uintptr_t>(ahead);
    std::size_t at = 0;
    for (; at + kLineBytes <= bytes; at += kLineBytes) {
      for (std::uintptr_t row = 0; row < 4 && ahead != 0; ++row)
        __builtin_prefetch(reinterpret_cast<const void*>(next + row * static_cast<std::uintptr_t>(stride) + at), 0, 2);
      for (std::size_t i = 0; i < kLineBytes; i += 16) interleave_four<Size>(source + at + i, stride, target + 4 * (at + i));
    }
    for (; at + 16 <= bytes; at += 16) interleave_four<Size>(source + at, stride, target + 4 * at);
    for (; at < bytes; at += Size) {
      for (std::size_t row = 0; row < 4; ++row)
        std::memcpy(target + 4 * at + row * Size, source + static_cast<std::ptrdiff_t>(row) * stride + at, Size);
    }
  }
}

HWY_ATTR inline void copy_runs(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride,
                               std::size_t runs, std::size_t bytes, std::ptrdiff_t ahead) noexcept {
  if (bytes < 16 || bytes > 1024) return plain::copy_runs(source, source_stride, target, target_stride, runs, bytes);
  for (; runs > 0; --runs, source += source_stride, target += target_stride) {
    const std::uintptr_t next = reinterpret_cast<std::uintptr_t>(source) + static_cast<std::uintptr_t>(ahead);
    std::size_t at = 0;
    for (; at + 64 <= bytes; at += 64) {
      if (ahead != 0) __builtin_prefetch(reinterpret_cast<const void*>(next + at), 0, 2);
      V8 line[64 / kBlock];
      for (std::size_t i = 0; i < 64 / kBlock; ++i) line[i] = get(D8(), reinterpret_cast<const std::uint8_t*>(source) + at, i);
      for (std::size_t i = 0; i < 64 / kBlock; ++i) put(line[i], reinterpret_cast<std::uint8_t*>(target) + at, i);
    }
    for (; at + 16 <= bytes; at += 16) store(load<1>(source + at), target + at);
    if (at < bytes) store(load<1>(source + bytes - 16), target + bytes - 16);  // overlaps the previous store
  }
}

HWY_INLINE void stream_line(const std::uint8_t* from, std::uint8_t* to) {
  static_assert(kLineBytes % kBlock == 0, "a line is whole vectors, of a length that is known");
  for (std::size_t i = 0; i < kLineBytes; i += kBlock) hn::Stream(hn::LoadU(D8(), from + i), D8(), to + i);
}

// Partial lines are written through the cache.
HWY_ATTR inline void stream_runs(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride,
                                 std::size_t runs, std::size_t bytes, Seam seam) noexcept {
  for (std::size_t run = 0; run < runs; ++run, source += source_stride, target += target_stride) {
    const auto* const from = reinterpret_cast<const std::uint8_t*>(source);
    auto* const to = reinterpret_cast<std::uint8_t*>(target);
    const std::size_t begun = reinterpret_cast<std::uintptr_t>(to) % kLineBytes;
    const std::size_t head = (kLineBytes - begun) % kLineBytes;
    std::size_t at = head < bytes ? head : bytes;
    if (seam.before && begun != 0) {
      std::uint8_t joined[2 * kLineBytes];
      std::memcpy(joined, seam.ends + run * kLineBytes, kLineBytes);
      std::memcpy(joined + kLineBytes, from, kLineBytes);
      stream_line(joined + head, to - begun);
    } else if (at != 0) {
      std::memcpy(to, from, at);
    }
    for (; at + kLineBytes <= bytes; at += kLineBytes) stream_line(from + at, to + at);
    if (seam.after)
      std::memcpy(seam.ends + run * kLineBytes, from + bytes - kLineBytes, kLineBytes);
    else if (at < bytes)
      std::memcpy(to + at, from + at, bytes - at);
  }
}
inline void flush_stream() noexcept { hwy::FlushStream(); }

// ---- Strided rows.

template <std::size_t Size>
HWY_INLINE Vec<Size> reversed(Vec<Size> v) {
  if constexpr (Size > 2) {
    return hn::Reverse(Tag<Size>(), v);
  } else {
    alignas(16) static constexpr std::uint8_t kOrder[2][16] = {{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
                                                               {14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1}};
    return hn::TableLookupBytes(v, hn::BitCast(Tag<Size>(), hn::Load(Bytes(), kOrder[Size - 1])));
  }
}

// The same for a gather and a scatter: reversing one side is reversing the other.
template <std::size_t Size>
HWY_ATTR void reverse(const std::byte* last, std::byte* target, std::size_t count) {
  std::size_t at = 0;
  for (; at + kSide<Size> <= count; at += kSide<Size>)
    store(reversed<Size>(load<Size>(last - (at + kSide<Size> - 1) * Size)), target + at * Size);
  plain::gather<Size>(last - at * Size, -1, target + at * Size, count - at);
}

// Gathers every third or fourth element, or every second of a few. The last ones are left to the scalar loop:
// the memory after them may not be readable.
template <std::size_t Size, std::size_t Step>
HWY_ATTR void gather_every(const std::byte* source, std::byte* target, std::size_t count) {
  std::size_t at = 0;
  for (; at + kSide<Size> < count; at += kSide<Size>) {
    Vec<Size> parts[4];
    load_interleaved<Size, Step>(source + at * Step * Size, parts);
    store(parts[0], target + at * Size);
  }
  plain::gather<Size>(source + at * Step * Size, Step, target + at * Size, count - at);
}

// Gathers every second element with the longest vectors. The last load starts one element earlier in the
// source, so that it ends with the last element.
template <std::size_t Size>
HWY_ATTR void gather_every_second(const std::byte* source, std::byte* target, std::size_t count) {
  constexpr std::size_t kLanes = kBlock / Size;
  if (count <= kLanes) return gather_every<Size, 2>(source, target, count);
  const hn::Repartition<Lane<Size>, D8> d;
  const auto* const from = reinterpret_cast<const std::uint8_t*>(source);
  auto* const to = reinterpret_cast<std::uint8_t*>(target);
  std::size_t at = 0;
  for (; at + kLanes < count; at += kLanes)
    put(hn::ConcatEven(d, get(d, from + 2 * at * Size, 1), get(d, from + 2 * at * Size, 0)), to + at * Size, 0);
  const std::uint8_t* const last = from + (2 * (count - kLanes) - 1) * Size;
  put(hn::ConcatOdd(d, get(d, last, 1), get(d, last, 0)), to + (count - kLanes) * Size, 0);
}

template <std::size_t Size>
HWY_ATTR void repeat(const std::byte* source, std::byte* target, std::size_t count) {
  if (count == 0) return;  // then `source` may not be readable
  Lane<Size> element;
  std::memcpy(&element, source, Size);
  const Vec<Size> all = hn::Set(Tag<Size>(), element);
  std::size_t at = 0;
  for (; at + kSide<Size> <= count; at += kSide<Size>) store(all, target + at * Size);
  plain::gather<Size>(source, 0, target + at * Size, count - at);
}

template <std::size_t Size>
HWY_ATTR void gather(const std::byte* source, std::ptrdiff_t step, std::byte* target, std::size_t count) noexcept {
  switch (step) {
    case -1: return reverse<Size>(source, target, count);
    case 0: return repeat<Size>(source, target, count);
    case 2: return gather_every_second<Size>(source, target, count);
    case 3: return gather_every<Size, 3>(source, target, count);
    case 4: return gather_every<Size, 4>(source, target, count);
    default: return plain::gather<Size>(source, step, target, count);
  }
}

template <std::size_t Size>
HWY_ATTR void scatter(const std::byte* source, std::byte* target, std::ptrdiff_t step, std::size_t count) noexcept {
  if (step == -1 && count != 0) return reverse<Size>(source + (count - 1) * Size, target - (count - 1) * Size, count);
  plain::scatter<Size>(source, target, step, count);
}

}  // namespace berth::internal::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard

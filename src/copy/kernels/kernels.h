// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "berth/base/dtype.h"

// The inner loops of copies, as tables of functions: one table for each SIMD instruction set that the library
// was built with. They know addresses, sizes and dtypes. None allocates, throws or needs an aligned address;
// source and target do not overlap. The results of every table are bit-identical to those of the plain loops
// (lanes.h, plain_moves.h). Tables are immutable; any thread.
namespace berth::internal::copy {

// How a cast rounds. `odd` sets the last kept bit if the lost bits are not all zero, so that rounding again, to
// a format with at least two bits less, gives what rounding once would have given.
enum class Rounding : unsigned char { nearest, odd };

// One step of a conversion. Some pairs of dtypes have a direct cast; conversion.h finds a chain of two or three
// for the others.
struct Cast {
  DType from;
  DType to;
  Rounding rounding = Rounding::nearest;

  friend constexpr bool operator==(const Cast&, const Cast&) = default;
};

inline constexpr Cast kCasts[] = {
    {DType::f16, DType::f32},
    {DType::bf16, DType::f32},
    {DType::f8e4m3, DType::f32},
    {DType::f8e5m2, DType::f32},
    {DType::i8, DType::f32},
    {DType::u8, DType::f32},
    {DType::i32, DType::f32},
    {DType::i32, DType::f32, Rounding::odd},
    {DType::f64, DType::f32},
    {DType::f64, DType::f32, Rounding::odd},
    {DType::f32, DType::f16},
    {DType::f32, DType::bf16},
    {DType::f32, DType::f8e4m3},
    {DType::f32, DType::f8e5m2},
    {DType::f32, DType::i8},
    {DType::f32, DType::u8},
    {DType::f32, DType::i32},
    {DType::f32, DType::f64},
    {DType::i32, DType::f64},
    {DType::i64, DType::f64},
    {DType::i64, DType::f32},
    {DType::i64, DType::f32, Rounding::odd},
    {DType::f64, DType::i32},
    {DType::f64, DType::i64},
    {DType::i8, DType::i32},
    {DType::u8, DType::i32},
    {DType::i32, DType::i64},
    {DType::i32, DType::u8},
    {DType::i64, DType::i32},
    {DType::boolean, DType::u8},
    {DType::u8, DType::boolean},
    {DType::i32, DType::boolean},
    {DType::i64, DType::boolean},
    {DType::f8e4m3, DType::boolean},
    {DType::f16, DType::boolean},
    {DType::f32, DType::boolean},
    {DType::f64, DType::boolean},
    // Shortcuts past f32, where a table has them.
    // To and between bytes first:
    {DType::boolean, DType::f8e4m3},
    {DType::boolean, DType::f8e5m2},
    {DType::i8, DType::f8e4m3},
    {DType::i8, DType::f8e5m2},
    {DType::u8, DType::f8e4m3},
    {DType::u8, DType::f8e5m2},
    {DType::f8e4m3, DType::i8},
    {DType::f8e4m3, DType::u8},
    {DType::f8e4m3, DType::f8e5m2},
    {DType::f8e5m2, DType::i8},
    {DType::f8e5m2, DType::u8},
    {DType::f8e5m2, DType::f8e4m3},
    {DType::f64, DType::f8e4m3},
    {DType::f64, DType::f8e5m2},
    {DType::f64, DType::i8},
    {DType::f64, DType::u8},
    {DType::i64, DType::f8e4m3},
    {DType::i64, DType::f8e5m2},
    {DType::i32, DType::f8e4m3},
    {DType::i32, DType::f8e5m2},
    {DType::bf16, DType::f8e4m3},
    {DType::bf16, DType::f8e5m2},
    {DType::bf16, DType::i8},
    {DType::bf16, DType::u8},
    {DType::f16, DType::i8},
    {DType::f16, DType::u8},
    {DType::f16, DType::f8e4m3},
    {DType::f16, DType::f8e5m2},
    // and the others.
    {DType::f64, DType::f16},
    {DType::f64, DType::bf16},
    {DType::i64, DType::f16},
    {DType::i64, DType::bf16},
    {DType::i32, DType::f16},
    {DType::i32, DType::bf16},
    {DType::f16, DType::bf16},
    {DType::bf16, DType::f16},
    {DType::f16, DType::i32},
    {DType::bf16, DType::i32},
    {DType::f8e4m3, DType::i32},
    {DType::f8e5m2, DType::i32},
    {DType::f8e5m2, DType::bf16},
    {DType::boolean, DType::f16},
    {DType::boolean, DType::bf16},
    {DType::i8, DType::bf16},
    {DType::u8, DType::bf16},
    {DType::f8e4m3, DType::bf16},
    {DType::i8, DType::f16},
    {DType::u8, DType::f16},
    {DType::f8e4m3, DType::f16},
    {DType::f8e5m2, DType::f16},
};
inline constexpr std::size_t kCastCount = std::size(kCasts);

constexpr std::size_t cast_index(const Cast& cast) noexcept {
  std::size_t at = 0;
  while (at < kCastCount && !(kCasts[at] == cast)) ++at;
  return at;
}

// Every table except the plain one has the casts before the shortcuts; some also have those to bytes.
inline constexpr std::size_t kNeededCasts = cast_index({DType::boolean, DType::f8e4m3});
inline constexpr std::size_t kNeededAndByteCasts = cast_index({DType::f64, DType::f16});

// Sizes of elements are powers of two; tables are indexed by their logarithm.
inline constexpr std::size_t kSizeCount = 5;
constexpr std::size_t size_index(std::size_t bytes) noexcept { return bytes <= 2 ? bytes - 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4; }

inline constexpr std::size_t kLineBytes = 64;  // of the caches

// This many elements do not fit into the L1 cache.
inline constexpr std::size_t kManyElements = 16384;

// Converts `count` contiguous elements.
using ConvertRow = void (*)(const std::byte* source, std::byte* target, std::size_t count) noexcept;
// Gathers elements that are `step` elements apart into contiguous ones, and scatters them back. The step may be
// negative or 0 (not 0 for a scatter).
using GatherRow = void (*)(const std::byte* source, std::ptrdiff_t step, std::byte* target, std::size_t count) noexcept;
using ScatterRow = void (*)(const std::byte* source, std::byte* target, std::ptrdiff_t step, std::size_t count) noexcept;
// Transposes rows × columns elements, contiguous and row-major, to columns × rows, whose rows are
// `target_stride` bytes apart.
using Transpose = void (*)(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns,
                           std::ptrdiff_t target_stride) noexcept;
// Copies `runs` runs of `bytes` bytes; strides are in bytes. For runs of a few hundred bytes, where the call of
// memcpy for each run would dominate. With each run, prefetches the run that is `ahead` bytes further; 0
// prefetches nothing. The prefetched address need not be valid.
using CopyRuns = void (*)(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride,
                          std::size_t runs, std::size_t bytes, std::ptrdiff_t ahead) noexcept;

// Lets runs that begin and end in the middle of the target's cache lines be written in whole lines: a call
// saves the end of each of its runs, and leaves the last, partial line to the call that continues the runs.
// Both calls have the same number of runs, each of a line or more.
struct Seam {
  std::byte* ends = nullptr;  // kLineBytes for each run
  bool before = false;        // these runs continue from the saved ends
  bool after = false;         // another call will continue these runs

  Seam from_run(std::size_t run) const noexcept { return before || after ? Seam{ends + run * kLineBytes, before, after} : Seam{}; }
};

// As CopyRuns, for runs of any length, but writes whole cache lines of the target with non-temporal stores:
// they cause no read-for-ownership and evict no other lines. Other threads see the stores once this thread has
// called FlushStream.
using StreamRuns = void (*)(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride,
                            std::size_t runs, std::size_t bytes, Seam seam) noexcept;
using FlushStream = void (*)() noexcept;

// Interleaves the elements of every four rows, which are `source_stride` bytes apart, into one row: what
// remains to be transposed are elements four times as long. The number of rows is a multiple of four. `ahead`
// prefetches as in CopyRuns.
using InterleaveFours = void (*)(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::size_t rows,
                                 std::size_t columns, std::ptrdiff_t ahead) noexcept;
// As Transpose for elements of 16 bytes, but writes one cache line of the target at a time. The target's rows
// begin at multiples of four bytes.
using TransposeToLines = void (*)(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns,
                                  std::ptrdiff_t target_stride, Seam seam) noexcept;

struct Kernels {
  const char* name = "";                             // of the instructions: "NEON"
  std::array<ConvertRow, kCastCount> casts = {};     // in the order of kCasts; null: not in this table
  std::array<GatherRow, kSizeCount> gather = {};     // by size_index; never null
  std::array<ScatterRow, kSizeCount> scatter = {};   //
  std::array<Transpose, kSizeCount> transpose = {};  //
  CopyRuns copy_runs = nullptr;
  StreamRuns stream_runs = nullptr;
  FlushStream flush_stream = nullptr;
  // Null where transposing from the cache is as fast: for larger elements, where vectors are longer than 128
  // bits, and in the plain table.
  std::array<InterleaveFours, kSizeCount> interleave_fours = {};
  TransposeToLines transpose_to_lines = nullptr;  // not null if interleave_fours has one for four bytes
  // Copies whose target has at least this many bytes use non-temporal stores. SIZE_MAX: none does, because the
  // processor detects full-line writes by itself, or has no such instructions.
  std::size_t least_streamed = SIZE_MAX;
};

// Scalar loops. Has no casts: conversions then go through lanes.h.
const Kernels& plain_kernels() noexcept;

// Every table that this processor can run, the best first and the plain one last.
std::span<const Kernels> all_kernels() noexcept;
inline const Kernels& best_kernels() noexcept { return all_kernels().front(); }

}  // namespace berth::internal::copy

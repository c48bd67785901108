// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "berth/base/dtype.h"

// The loops in which the time of a copy is spent, as tables of functions: one table for each set of vector instructions that the library
// was built with. They know addresses, sizes and dtypes. None allocates, throws or needs an address to be aligned; source and target do not
// overlap. With every table the results are the same, to the bit, as those of the plain loops (lanes.h, plain_moves.h).
namespace berth::internal::copy {

// How a cast rounds. `odd` keeps what is lost as the last bit of what is left, so that rounding again, to a format with at least two bits
// less, gives what rounding once would have given.
enum class Rounding : unsigned char { nearest, odd };

// One step of a conversion. Between some dtypes there is one; conversion.h finds a way of one to three for the others.
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
    // Ways that are shorter than those through f32, where a table has them.
    // Into bytes first:
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

// Every table but the plain one has those before the shorter ways; some have those into bytes too.
inline constexpr std::size_t kNeededCasts = cast_index({DType::boolean, DType::f8e4m3});
inline constexpr std::size_t kNeededAndByteCasts = cast_index({DType::f64, DType::f16});

// Sizes of elements are powers of two; tables are indexed by their logarithm.
inline constexpr std::size_t kSizeCount = 5;
constexpr std::size_t size_index(std::size_t bytes) noexcept { return bytes <= 2 ? bytes - 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4; }

inline constexpr std::size_t kLineBytes = 64;  // of the caches

// So many elements are more than the first cache holds.
inline constexpr std::size_t kManyElements = 16384;

// `count` elements that lie one after another.
using ConvertRow = void (*)(const std::byte* source, std::byte* target, std::size_t count) noexcept;
// Elements `step` elements apart into ones that lie together, and the other way. The step may be negative or 0 (not for a scatter).
using GatherRow = void (*)(const std::byte* source, std::ptrdiff_t step, std::byte* target, std::size_t count) noexcept;
using ScatterRow = void (*)(const std::byte* source, std::byte* target, std::ptrdiff_t step, std::size_t count) noexcept;
// rows × columns elements that lie together, row after row, into columns × rows, whose rows are `target_stride` bytes apart.
using Transpose = void (*)(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns,
                           std::ptrdiff_t target_stride) noexcept;
// So many runs of bytes, the strides in bytes. For runs of a few hundred, where a call of memcpy for each would be what costs. With each run,
// one so many bytes ahead of it is asked for from memory; 0 asks for none. Any address may be asked for.
using CopyRuns = void (*)(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride,
                          std::size_t runs, std::size_t bytes, std::ptrdiff_t ahead) noexcept;

// How runs that begin and end in the middle of the target's cache lines are written by whole lines all the same: a call keeps the end of each of
// its runs, and leaves the line in which it ends to the call that goes on from there. Both have as many runs, of a line or more.
struct Seam {
  std::byte* ends = nullptr;  // kLineBytes for each run
  bool before = false;        // these runs go on from the ends that are kept
  bool after = false;         // others will go on from these

  Seam from_run(std::size_t run) const noexcept { return before || after ? Seam{ends + run * kLineBytes, before, after} : Seam{}; }
};

// What CopyRuns does, for runs of any length, and whole cache lines of the target are written past the caches: so they are not read first,
// and do not take the place of others. What was written so is there for other threads once this one has called FlushStream.
using StreamRuns = void (*)(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride,
                            std::size_t runs, std::size_t bytes, Seam seam) noexcept;
using FlushStream = void (*)() noexcept;

// Each four rows, which are `source_stride` bytes apart, into one in which their elements take turns: what is left to turn are elements four times
// as long. The number of rows is a multiple of four. Rows are asked for ahead as in CopyRuns.
using InterleaveFours = void (*)(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::size_t rows,
                                 std::size_t columns, std::ptrdiff_t ahead) noexcept;
// What Transpose does with elements of 16 bytes, a line of the target at a time. Its rows begin at multiples of four bytes.
using TransposeToLines = void (*)(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns,
                                  std::ptrdiff_t target_stride, Seam seam) noexcept;

struct Kernels {
  const char* name = "";                             // of the instructions: "NEON"
  std::array<ConvertRow, kCastCount> casts = {};     // in the order of kCasts; null: not in this table
  std::array<GatherRow, kSizeCount> gather = {};     // by size_index; these are all there
  std::array<ScatterRow, kSizeCount> scatter = {};   //
  std::array<Transpose, kSizeCount> transpose = {};  //
  CopyRuns copy_runs = nullptr;
  StreamRuns stream_runs = nullptr;
  FlushStream flush_stream = nullptr;
  // Null where it is as good to turn elements from the cache: larger ones, where vectors are longer than 128 bits, and in the plain table.
  std::array<InterleaveFours, kSizeCount> interleave_fours = {};
  TransposeToLines transpose_to_lines = nullptr;  // there if the one of elements of four bytes is
  // A copy whose target has so many bytes or more is streamed. SIZE_MAX: none is, because the processor sees by itself that lines are written
  // whole, or has no instructions for it.
  std::size_t least_streamed = SIZE_MAX;
};

// Plain loops. No casts: without them, conversions go through lanes.h.
const Kernels& plain_kernels() noexcept;

// Every table that this processor can run, the best first and the plain one last.
std::span<const Kernels> all_kernels() noexcept;
inline const Kernels& best_kernels() noexcept { return all_kernels().front(); }

}  // namespace berth::internal::copy

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "base/axes.h"
#include "base/pieces.h"
#include "device/cuda/kernels/pairs.h"
#include "device/cuda/kernels/tasks.h"

// Chooses the kernels: a copy's axes are merged and ordered by the target (base/axes.h), the loop is cut so
// that no launch has more than 2^30 elements, and each piece goes to the fastest kernel family that can do it:
// rows, tiles, or element by element.
namespace berth::internal::device::cuda {

namespace {

constexpr std::int64_t kLeastRow = 256;       // elements, to justify a block per row
constexpr std::int64_t kLeastByteRow = 4096;  // bytes, likewise
constexpr std::int64_t kLeastTileSide = 8;    // elements along both axes
constexpr std::size_t kMostMoved = 16;        // bytes per element in a move

// One piece of a copy, the input of a launch.
struct Piece {
  const std::byte* source;
  std::byte* target;
  DType from;
  DType to;
  const std::byte* source_begin;  // of everything that the copy reads
  const std::byte* source_end;

  std::int64_t from_bytes() const noexcept { return static_cast<std::int64_t>(size_bytes(from)); }
  std::int64_t to_bytes() const noexcept { return static_cast<std::int64_t>(size_bytes(to)); }
};

std::uintptr_t address(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }
bool is_aligned(const void* pointer, std::size_t to) noexcept { return address(pointer) % to == 0; }

bool is_plain_integer(DType dtype) noexcept { return dtype >= DType::u8 && dtype <= DType::i64; }

// Whether the conversion keeps the bits.
bool is_moved(DType from, DType to) noexcept {
  return from == to || (is_plain_integer(from) && is_plain_integer(to) && size_bytes(from) == size_bytes(to));
}

TaskAxis task_axis(const LoopAxis& axis, const Piece& piece) noexcept {
  return {Divider(static_cast<std::uint32_t>(axis.size)), axis.source_stride * piece.from_bytes(), axis.target_stride * piece.to_bytes()};
}

void append(TaskAxes& axes, const LoopAxis& axis, const Piece& piece) noexcept { axes.all[axes.rank++] = task_axis(axis, piece); }

std::uint32_t elements_of(std::span<const LoopAxis> axes) noexcept {
  std::uint32_t elements = 1;
  for (const LoopAxis& axis : axes) elements *= static_cast<std::uint32_t>(axis.size);
  return elements;
}

// The axis along which the source is contiguous, if it is not the target's and both are long enough for a tile.
std::optional<std::size_t> tile_axis(const Loop& loop) noexcept {
  if (loop.rank < 2 || loop.row().target_stride != 1 || loop.row().size < kLeastTileSide) return {};
  for (std::size_t i = 0; i + 1 < loop.rank; ++i) {
    if (loop.all[i].source_stride == 1 && loop.all[i].size >= kLeastTileSide) return i;
  }
  return {};
}

Status run_rows(const Piece& piece, const Loop& loop, StreamHandle stream) noexcept {
  RowsTask task{.source = piece.source,
                .target = piece.target,
                .source_begin = piece.source_begin,
                .source_end = piece.source_end,
                .elements = static_cast<std::uint32_t>(loop.row().size),
                .rows = elements_of(loop.outer()),
                .outer = {}};
  for (const LoopAxis& axis : loop.outer()) append(task.outer, axis, piece);
  return launch_rows(piece.from, piece.to, task, stream);
}

Status run_tiles(const Piece& piece, const Loop& loop, std::size_t along_source, StreamHandle stream) noexcept {
  const TaskAxis run = task_axis(loop.all[along_source], piece);
  const TaskAxis row = task_axis(loop.row(), piece);
  TilesTask task{.source = piece.source,
                 .target = piece.target,
                 .source_begin = piece.source_begin,
                 .source_end = piece.source_end,
                 .along_source = run.size.divisor,
                 .along_target = row.size.divisor,
                 .source_step = row.source_step,
                 .target_step = run.target_step,
                 .wide_source = is_aligned(piece.source, 16) && row.source_step % 16 == 0,
                 .wide_target = is_aligned(piece.target, 16) && run.target_step % 16 == 0,
                 .matrices = 1,
                 .outer = {}};
  for (std::size_t i = 0; i + 1 < loop.rank; ++i) {
    if (i == along_source) continue;
    append(task.outer, loop.all[i], piece);
    const TaskAxis& axis = task.outer.all[task.outer.rank - 1];
    task.matrices *= axis.size.divisor;
    task.wide_source = task.wide_source && axis.source_step % 16 == 0;
    task.wide_target = task.wide_target && axis.target_step % 16 == 0;
  }
  return launch_tiles(piece.from, piece.to, task, stream);
}

Status run_elements(const Piece& piece, const Loop& loop, StreamHandle stream) noexcept {
  ElementsTask task{.source = piece.source,
                    .target = piece.target,
                    .from = piece.from,
                    .to = piece.to,
                    .aligned = is_aligned(piece.source, size_bytes(piece.from)) && is_aligned(piece.target, size_bytes(piece.to)),
                    .elements = elements_of(loop.axes()),
                    .axes = {}};
  for (const LoopAxis& axis : loop.axes()) append(task.axes, axis, piece);
  return piece.from == piece.to ? launch_moves(size_bytes(piece.to), task, stream) : launch_conversions(task, stream);
}

Status run_piece(const Piece& piece, const Loop& loop, StreamHandle stream) noexcept {
  const bool aligned_target = is_aligned(piece.target, size_bytes(piece.to));
  const std::int64_t least = loop.rank <= 1 ? 1 : piece.from == piece.to ? kLeastByteRow : kLeastRow;
  if (has_rows(piece.from, piece.to) && aligned_target && loop.is_dense() && loop.row().size >= least) return run_rows(piece, loop, stream);
  if (has_tiles(piece.from, piece.to) && aligned_target && is_aligned(piece.source, size_bytes(piece.from))) {
    if (const auto axis = tile_axis(loop)) return run_tiles(piece, loop, *axis, stream);
  }
  return run_elements(piece, loop, stream);
}

// The same loop in smaller elements: `parts` of them make one.
Loop split(const Loop& loop, std::int64_t parts) noexcept {
  Loop made = loop;
  if (parts == 1) return made;
  for (std::size_t i = 0; i < made.rank; ++i) {
    made.all[i].source_stride *= parts;
    made.all[i].target_stride *= parts;
  }
  made.source_start *= parts;
  made.target_start *= parts;
  if (made.rank != 0 && loop.is_dense())
    made.all[made.rank - 1] = {loop.row().size * parts, 1, 1};
  else
    // There is room: axes have at least size 2, and the element count fits in 63 bits, so rank <= 63.
    made.all[made.rank++] = {parts, 1, 1};
  return made;
}

// The same loop in larger elements, of `parts` each. REQUIRES: rows are dense; row sizes, strides and starts
// are multiples of `parts`.
Loop joined(const Loop& loop, std::int64_t parts) noexcept {
  Loop made = loop;
  for (std::size_t i = 0; i + 1 < made.rank; ++i) {
    made.all[i].source_stride /= parts;
    made.all[i].target_stride /= parts;
  }
  made.source_start /= parts;
  made.target_start /= parts;
  made.all[made.rank - 1].size /= parts;
  return made;
}

// The largest power of two, at most `most`, that divides all addresses, strides and sizes of the rows.
std::size_t common_unit(const Piece& bytes, const Loop& loop, std::size_t most) noexcept {
  std::uint64_t all = address(bytes.source) | address(bytes.target) | most | static_cast<std::uint64_t>(loop.row().size) |
                      static_cast<std::uint64_t>(loop.source_start) | static_cast<std::uint64_t>(loop.target_start);
  for (const LoopAxis& axis : loop.outer())
    all |= static_cast<std::uint64_t>(axis.source_stride) | static_cast<std::uint64_t>(axis.target_stride);
  return static_cast<std::size_t>(all & (0 - all));
}

// Elements that keep their bits may be split and joined: to the largest aligned unit, and to vectors where rows
// are contiguous.
Loop retyped(Piece& piece, const Loop& loop) noexcept {
  const std::size_t size = size_bytes(piece.to);
  if (loop.rank != 0 && loop.is_dense()) {
    Loop bytes = split(loop, static_cast<std::int64_t>(size));
    piece.from = piece.to = DType::u8;
    const std::size_t unit = common_unit(piece, bytes, kMostMoved);
    if (bytes.rank == 1 || (unit < kMostMoved && bytes.row().size >= kLeastByteRow)) return bytes;
    piece.from = piece.to = dtype_of_size(unit);
    return unit == 1 ? bytes : joined(bytes, static_cast<std::int64_t>(unit));
  }
  std::size_t unit = size;
  while (!is_aligned(piece.source, unit) || !is_aligned(piece.target, unit)) unit /= 2;
  piece.from = piece.to = dtype_of_size(unit);
  return split(loop, static_cast<std::int64_t>(size / unit));
}

}  // namespace

bool can_copy_elements(const ElementCopy& copy) noexcept {
  return try_extent(copy.shape, copy.source_strides, copy.source_dtype) && try_extent(copy.shape, copy.target_strides, copy.target_dtype);
}

Status launch_copy_elements(const ElementCopy& copy, StreamHandle stream) noexcept {
  const auto reads = try_extent(copy.shape, copy.source_strides, copy.source_dtype);
  const auto writes = try_extent(copy.shape, copy.target_strides, copy.target_dtype);
  if (!reads || !writes) return Failure{ErrorCode::out_of_bounds, 0, "the elements lie farther apart than 63 bits can count"};
  if (writes->from_bytes == 0) return {};
  const auto* const source = static_cast<const std::byte*>(copy.source);
  Piece whole{.source = source,
              .target = static_cast<std::byte*>(copy.target),
              .from = copy.source_dtype,
              .to = copy.target_dtype,
              .source_begin = source - reads->before_bytes,
              .source_end = source + reads->from_bytes};
  Loop loop = make_loop(copy.shape, copy.source_strides, copy.target_strides);
  if (is_moved(whole.from, whole.to)) loop = retyped(whole, loop);

  Status done;
  for_each_piece(loop, cut(loop, kMostElements), [&](const Loop& part) {
    if (!done) return;
    Piece piece = whole;
    piece.source += part.source_start * piece.from_bytes();
    piece.target += part.target_start * piece.to_bytes();
    done = run_piece(piece, part, stream);
  });
  return done;
}

}  // namespace berth::internal::device::cuda

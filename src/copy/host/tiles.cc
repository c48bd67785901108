// SPDX-License-Identifier: Apache-2.0
#include "copy/host/tiles.h"

#include <algorithm>

namespace berth::internal::copy {

namespace {

// Measured on ARM64 (Neoverse V1), where a core prefetches 16 streams: that many rows at a time, and a kibibyte
// of each before the next rows.
constexpr std::int64_t kRowsTogether = 16;

struct TileShape {
  std::int64_t rows;         // of elements of four bytes or more; twice as many of smaller elements
  std::int64_t tile_bytes;   // transposed in the L1 cache
  std::int64_t panel_bytes;  // kept in the L2 cache
};
constexpr TileShape kCached = {64, 16 << 10, 64 << 10};
// Measured on the same machine, for f32 and u8 of 8192 × 8192 and of 8193 × 8191.
constexpr TileShape kInterleaved = {64, 16 << 10, 48 << 10};
constexpr TileShape kJoined = {64, 8 << 10, 32 << 10};  // interleaved, and written by cache lines that span
                                                        // panels
static_assert(std::max(kInterleaved.tile_bytes, kJoined.tile_bytes) <= kCached.tile_bytes);
static_assert(std::max(kInterleaved.panel_bytes, kJoined.panel_bytes) <= kCached.panel_bytes);
// Measured on x86-64 (Xeon, 48 KiB L1, 2 MiB L2): longer runs of the target are worth more than free space in
// the L1 cache.
constexpr TileShape kStreamed = {128, 32 << 10, 128 << 10};

constexpr std::int64_t kConvertedBytes = 8 << 10;  // of elements that are streamed from the L1 cache
// The most runs of a panel that has another below it: with non-temporal stores of single bytes, and through the
// caches with elements of four bytes.
constexpr std::int64_t kMostStreamed = kStreamed.panel_bytes / (2 * kStreamed.rows);
constexpr std::int64_t kMostJoined = kInterleaved.panel_bytes / (4 * kInterleaved.rows);

// Whether each run of bytes that a tile writes has enough whole cache lines.
bool is_worth_streaming(const HostPlan& plan, std::int64_t element_bytes) noexcept {
  constexpr auto kLeastRun = static_cast<std::int64_t>(4 * kLineBytes);
  const bool together = plan.column.target_step == plan.row.size;  // a plane is one run
  const std::int64_t least = kLeastRun / element_bytes;
  return plan.row.target_step == 1 && (plan.row.size >= least || (together && plan.row.size * plan.column.size >= least));
}

bool is_on_line(std::uintptr_t address) noexcept { return address % kLineBytes == 0; }

// Not for rows shorter than a cache line; nor where vectors of fours would make at most one line of the target.
bool is_worth_interleaving(const Conversion& convert_in, const HostPlan& plan) noexcept {
  constexpr auto kLine = static_cast<std::int64_t>(kLineBytes);
  const auto size = static_cast<std::int64_t>(size_bytes(convert_in.to));
  return convert_in.is_copy() && plan.column.source_step == 1 && plan.column.size * size >= kLine &&
         (size < 4 || plan.row.size * size > kLine);
}

Conversion no_conversion(DType dtype) noexcept { return {.from = dtype, .to = dtype}; }
bool converts_while_reading(const Conversion& conversion) noexcept { return size_bytes(conversion.to) <= size_bytes(conversion.from); }

std::int64_t blocks(std::int64_t size, std::int64_t block) noexcept { return (size + block - 1) / block; }

}  // namespace

Tiles::Tiles(const Kernels& kernels, const Conversion& conversion, const HostPlan& plan, bool streamed) noexcept
    : plan_(plan),
      from_bytes_(static_cast<std::ptrdiff_t>(size_bytes(conversion.from))),
      to_bytes_(static_cast<std::ptrdiff_t>(size_bytes(conversion.to))),
      convert_in_(converts_while_reading(conversion) ? conversion : no_conversion(conversion.from)),
      convert_out_(converts_while_reading(conversion) ? no_conversion(conversion.to) : conversion),
      reader_(kernels, convert_in_, plan.column.source_step, 1),
      writer_(kernels, convert_out_, 1, plan.row.target_step),
      transpose_(kernels.transpose[size_index(size_bytes(convert_in_.to))]),
      interleave_(is_worth_interleaving(convert_in_, plan) ? kernels.interleave_fours[size_index(size_bytes(convert_in_.to))] : nullptr),
      transpose_fours_(interleave_ != nullptr ? kernels.transpose[size_index(4 * size_bytes(convert_in_.to))] : nullptr),
      transpose_to_lines_(interleave_ != nullptr && size_bytes(convert_in_.to) == 4 && convert_out_.is_copy() && plan.row.target_step == 1
                              ? kernels.transpose_to_lines
                              : nullptr),
      stream_runs_(streamed && is_worth_streaming(plan, to_bytes_) ? kernels.stream_runs : nullptr),
      tile_bytes_(static_cast<std::ptrdiff_t>(size_bytes(convert_in_.to))) {
  // So few rows are better taken whole: then consecutive panels continue along them, and are consecutive in the
  // target.
  const bool few = transpose_to_lines_ != nullptr && plan.row.size <= 4 * kInterleaved.rows;
  const bool joined = transpose_to_lines_ != nullptr && !is_on_line(static_cast<std::uintptr_t>(plan.column.target_step * to_bytes_));
  const TileShape& shape = stream_runs_ != nullptr ? kStreamed : few || interleave_ == nullptr ? kCached : joined ? kJoined : kInterleaved;
  // A short axis is taken whole, which leaves a longer extent for the other.
  const std::int64_t most = shape.tile_bytes / tile_bytes_;
  const std::int64_t rows = few ? plan.row.size : std::min(tile_bytes_ < 4 ? 2 * shape.rows : shape.rows, most / kRowsTogether);
  const std::int64_t length = most / rows;
  down_ = std::min(plan.row.size, plan.column.size < length ? most / plan.column.size : rows);
  tile_across_ = std::min(plan.column.size, plan.row.size < rows ? most / plan.row.size : length);
  if (interleave_ != nullptr && down_ > kRowsTogether && down_ < plan.row.size) down_ = down_ / kRowsTogether * kRowsTogether;
  across_ = std::min(plan.column.size, std::max(shape.panel_bytes / (down_ * tile_bytes_) / tile_across_, std::int64_t{1}) * tile_across_);
  blocks_down_ = blocks(plan.row.size, down_);
  blocks_across_ = blocks(plan.column.size, across_);
}

void Tiles::run(const std::byte* source, std::byte* target, std::size_t first, std::size_t last) const noexcept {
  stream_runs_ != nullptr ? run_streamed(source, target, first, last) : run_cached(source, target, first, last);
}

void Tiles::run_cached(const std::byte* source, std::byte* target, std::size_t first, std::size_t last) const noexcept {
  alignas(kLineBytes) std::byte tiles[kCached.panel_bytes];
  alignas(kLineBytes) std::byte turned[kCached.tile_bytes];
  static_assert(kMostJoined * kLineBytes <= sizeof turned, "what has seams goes right where it belongs, and needs that room for them");
  run_in_room(source, target, first, last, {tiles, turned, turned});
}

void Tiles::run_streamed(const std::byte* source, std::byte* target, std::size_t first, std::size_t last) const noexcept {
  alignas(kLineBytes) std::byte tiles[kStreamed.panel_bytes];
  alignas(kLineBytes) std::byte turned[kStreamed.tile_bytes];
  alignas(kLineBytes) std::byte ends[kMostStreamed * kLineBytes];
  run_in_room(source, target, first, last, {tiles, turned, ends});
}

void Tiles::run_in_room(const std::byte* source, std::byte* target, std::size_t first, std::size_t last, const Room& room) const noexcept {
  const bool seams = has_seams(target);
  bool before = false;
  for (std::size_t i = first; i < last; ++i) {
    const bool after = seams && i + 1 < last && goes_on(panel_at(i + 1));
    run(source, target, panel_at(i), room, seams ? Seam{room.ends, before, after} : Seam{});
    before = after;
  }
}

Tiles::Panel Tiles::panel_at(std::size_t index) const noexcept {
  const auto panel = static_cast<std::int64_t>(index);
  const std::int64_t down = panel % blocks_down_ * down_;  // the next panel continues the runs of this one
  const std::int64_t across = panel / blocks_down_ * across_;
  return {down, across, {std::min(down_, plan_.row.size - down), std::min(across_, plan_.column.size - across)}};
}

// Whether all rows of a panel are one contiguous run of the source, as they would be in a tile.
bool Tiles::is_together(Extent panel) const noexcept {
  return plan_.column.source_step == 1 && plan_.row.source_step == panel.across && panel.across <= tile_across_;
}

// Whether a panel is transposed directly from the source, without being read into a tile.
bool Tiles::is_in_place(Extent panel) const noexcept { return convert_in_.is_copy() && is_together(panel); }

// Whether its rows are interleaved by fours. A single group of four rows of short elements would leave nothing
// to shuffle, and no full vectors.
bool Tiles::is_in_fours(Extent panel) const noexcept {
  return interleave_ != nullptr && !is_in_place(panel) && panel.down % 4 == 0 && (panel.down > 4 || tile_bytes_ >= 4);
}

// Whether cache lines of a plane span panels, so that they wait until they can be written whole. Not if all of
// its rows begin on line boundaries, and panels too.
bool Tiles::has_seams(const std::byte* target) const noexcept {
  if (stream_runs_ != nullptr) return true;
  const auto address = reinterpret_cast<std::uintptr_t>(target);
  return transpose_to_lines_ != nullptr && address % 4 == 0 &&
         !is_on_line(address | static_cast<std::uintptr_t>(plan_.column.target_step * to_bytes_) |
                     static_cast<std::uintptr_t>(down_ * to_bytes_));
}

// Whether a panel continues the runs of the one above, which has full height. Long runs need no seam: few of
// their lines are partial.
bool Tiles::goes_on(const Panel& below) const noexcept {
  const std::int64_t most = stream_runs_ != nullptr ? kMostStreamed : kMostJoined;
  return below.down != 0 && below.size.across <= most && down_ * to_bytes_ <= kConvertedBytes &&
         below.size.down * to_bytes_ >= static_cast<std::int64_t>(kLineBytes) &&
         (stream_runs_ != nullptr || (down_ % 4 == 0 && is_in_fours(below.size)));
}

void Tiles::run(const std::byte* source, std::byte* target, const Panel& panel, const Room& room, Seam seam) const noexcept {
  const Extent whole = panel.size;
  source += (panel.down * plan_.row.source_step + panel.across * plan_.column.source_step) * from_bytes_;
  target += (panel.down * plan_.row.target_step + panel.across * plan_.column.target_step) * to_bytes_;
  // Elements that need no conversion are written directly to the target. (Elements of less than four bytes are
  // transposed in squares of so many rows that no cache would hold a line of each until it is whole.)
  const bool in_place = is_in_place(whole);
  const bool out_place = stream_runs_ == nullptr && convert_out_.is_copy() && plan_.row.target_step == 1 &&
                         (tile_bytes_ >= 4 || plan_.column.target_step == whole.down);
  const bool by_lines = out_place && seam.ends != nullptr;
  // Vectors that are not aligned to cache lines are better written by squares than each by itself.
  const bool fours =
      is_in_fours(whole) && (tile_bytes_ < 4 || !out_place || by_lines || is_on_line(reinterpret_cast<std::uintptr_t>(target)));
  const std::ptrdiff_t stride = plan_.column.target_step * to_bytes_;
  if (!in_place) read(source, room.tiles, panel, fours);
  for (std::int64_t across = 0; across < whole.across; across += tile_across_) {
    const Extent tile{whole.down, std::min(tile_across_, whole.across - across)};
    const Seam part = seam.from_run(static_cast<std::size_t>(across));
    const std::byte* const from = in_place ? source : room.tiles + across * whole.down * tile_bytes_;
    std::byte* const to = target + across * stride;
    const auto rows = static_cast<std::size_t>(fours ? tile.down / 4 : tile.down);
    const auto columns = static_cast<std::size_t>(tile.across);
    if (fours && by_lines)
      transpose_to_lines_(from, to, rows, columns, stride, part);
    else
      (fours ? transpose_fours_ : transpose_)(from, out_place ? to : room.turned, rows, columns,
                                              out_place ? stride : tile.down * tile_bytes_);
    if (!out_place) write(room.turned, to, tile, part);
  }
}

// The distance, to prefetch, from the rows that begin at `row` to those that are read next: in this panel or in
// the one below, if all of them exist, or else at the top of the panel beside it. Prefetching unmapped
// addresses is slow; so 0 at the end.
std::ptrdiff_t Tiles::next_rows(std::int64_t row, const Panel& panel) const noexcept {
  const std::ptrdiff_t row_bytes = plan_.row.source_step * from_bytes_;
  if (row + 2 * kRowsTogether <= plan_.row.size) return kRowsTogether * row_bytes;
  if (panel.across + panel.size.across == plan_.column.size) return 0;
  return panel.size.across * plan_.column.source_step * from_bytes_ - row * row_bytes;
}

void Tiles::read(const std::byte* source, std::byte* tiles, const Panel& panel, bool fours) const noexcept {
  if (is_together(panel.size)) return reader_(source, tiles, static_cast<std::size_t>(panel.size.down * panel.size.across));
  const std::ptrdiff_t row_bytes = plan_.row.source_step * from_bytes_;
  for (std::int64_t first = 0; first < panel.size.down; first += kRowsTogether) {
    const auto rows = static_cast<std::size_t>(std::min(kRowsTogether, panel.size.down - first));
    const std::ptrdiff_t ahead = next_rows(panel.down + first, panel);
    for (std::int64_t across = 0; across < panel.size.across; across += tile_across_) {
      const std::int64_t count = std::min(tile_across_, panel.size.across - across);
      const std::byte* const from = source + across * plan_.column.source_step * from_bytes_ + first * row_bytes;
      std::byte* const to = tiles + (across * panel.size.down + first * count) * tile_bytes_;
      if (fours)
        interleave_(from, row_bytes, to, rows, static_cast<std::size_t>(count), ahead);
      else
        reader_(from, row_bytes, to, count * tile_bytes_, rows, static_cast<std::size_t>(count), ahead);
    }
  }
}

void Tiles::write(const std::byte* turned, std::byte* target, Extent tile, Seam seam) const noexcept {
  if (stream_runs_ != nullptr) return stream(turned, target, tile, seam);
  if (plan_.row.target_step == 1 && plan_.column.target_step == tile.down)  // together they are one run
    return writer_(turned, target, static_cast<std::size_t>(tile.down * tile.across));
  writer_(turned, tile.down * tile_bytes_, target, plan_.column.target_step * to_bytes_, static_cast<std::size_t>(tile.across),
          static_cast<std::size_t>(tile.down));
}

void Tiles::stream(const std::byte* turned, std::byte* target, Extent tile, Seam seam) const noexcept {
  const bool together = plan_.column.target_step == tile.down;  // all rows are one run
  const std::int64_t runs = together ? 1 : tile.across;
  const std::int64_t count = together ? tile.down * tile.across : tile.down;
  const std::ptrdiff_t stride = plan_.column.target_step * to_bytes_;
  if (convert_out_.is_copy())
    return stream_runs_(turned, count * to_bytes_, target, stride, static_cast<std::size_t>(runs),
                        static_cast<std::size_t>(count * to_bytes_), seam);
  // As many rows at a time as fit into the buffer, or parts of one row.
  alignas(kLineBytes) std::byte converted[kConvertedBytes];
  const std::int64_t most = kConvertedBytes / to_bytes_;
  const std::int64_t length = std::min(count, most);
  const std::int64_t rows = most / length;
  for (std::int64_t run = 0; run < runs; run += rows) {
    for (std::int64_t at = 0; at < count; at += length) {
      const std::int64_t height = std::min(rows, runs - run);
      const std::int64_t width = std::min(length, count - at);
      convert_out_.run(turned + (run * count + at) * tile_bytes_, converted, static_cast<std::size_t>(height * width));
      stream_runs_(converted, width * to_bytes_, target + run * stride + at * to_bytes_, stride, static_cast<std::size_t>(height),
                   static_cast<std::size_t>(width * to_bytes_), seam.from_run(static_cast<std::size_t>(run)));
    }
  }
}

}  // namespace berth::internal::copy

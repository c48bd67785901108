// SPDX-License-Identifier: Apache-2.0
#include "copy/tiles.h"

#include <algorithm>

namespace berth {

namespace {

// Measured on ARM64 (Neoverse V1), where a core reads ahead in 16 places: so many rows at a time, and a kibibyte of each before the next are begun.
constexpr std::int64_t kRowsTogether = 16;

struct TileShape {
  std::int64_t rows;         // of elements of four bytes or more; twice as many of smaller ones
  std::int64_t tile_bytes;   // turned in the first cache
  std::int64_t panel_bytes;  // kept in the second
};
constexpr TileShape kCached = {64, 16 << 10, 64 << 10};
// Measured on x86-64 (Xeon, 48 KiB and 2 MiB of caches): longer runs of the target are worth more than room that is left in the first cache.
constexpr TileShape kStreamed = {128, 32 << 10, 128 << 10};

constexpr std::int64_t kConvertedBytes = 8 << 10;  // of elements that are streamed from the first cache

// Whether enough whole lines are in each run of bytes that a tile writes.
bool is_worth_streaming(const HostPlan& plan, std::int64_t element_bytes) noexcept {
  constexpr auto kLeastBytes = static_cast<std::int64_t>(4 * kLineBytes);
  const bool together = plan.column.target_step == plan.row.size;  // a plane is one run
  const std::int64_t least = kLeastBytes / element_bytes;
  return plan.row.target_step == 1 && (plan.row.size >= least || (together && plan.row.size * plan.column.size >= least));
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
      stream_runs_(streamed && is_worth_streaming(plan, to_bytes_) ? kernels.stream_runs : nullptr),
      tile_bytes_(static_cast<std::ptrdiff_t>(size_bytes(convert_in_.to))) {
  const TileShape& shape = stream_runs_ != nullptr ? kStreamed : kCached;
  // A short axis is taken whole, and leaves more for the other.
  const std::int64_t most = shape.tile_bytes / tile_bytes_;
  const std::int64_t rows = std::min(tile_bytes_ < 4 ? 2 * shape.rows : shape.rows, most / kRowsTogether);
  const std::int64_t length = most / rows;
  down_ = std::min(plan.row.size, plan.column.size < length ? most / plan.column.size : rows);
  tile_across_ = std::min(plan.column.size, plan.row.size < rows ? most / plan.row.size : length);
  across_ = std::min(plan.column.size, std::max(shape.panel_bytes / (down_ * tile_bytes_) / tile_across_, std::int64_t{1}) * tile_across_);
  blocks_down_ = blocks(plan.row.size, down_);
  blocks_across_ = blocks(plan.column.size, across_);
}

void Tiles::run(const std::byte* source, std::byte* target, std::size_t panel) const noexcept {
  const auto index = static_cast<std::int64_t>(panel);
  const std::int64_t first_down = index % blocks_down_ * down_;  // the next one goes on writing where this one ends
  const std::int64_t first_across = index / blocks_down_ * across_;
  const Extent whole{std::min(down_, plan_.row.size - first_down), std::min(across_, plan_.column.size - first_across)};
  source += (first_down * plan_.row.source_step + first_across * plan_.column.source_step) * from_bytes_;
  target += (first_down * plan_.row.target_step + first_across * plan_.column.target_step) * to_bytes_;
  if (stream_runs_ != nullptr)
    run_in_room<kStreamed.tile_bytes, kStreamed.panel_bytes>(source, target, whole);
  else
    run_in_room<kCached.tile_bytes, kCached.panel_bytes>(source, target, whole);
}

template <std::int64_t TileBytes, std::int64_t PanelBytes>
void Tiles::run_in_room(const std::byte* source, std::byte* target, Extent whole) const noexcept {
  alignas(kLineBytes) std::byte tiles[PanelBytes];
  alignas(kLineBytes) std::byte turned[TileBytes];
  run(source, target, whole, tiles, turned);
}

void Tiles::run(const std::byte* source, std::byte* target, Extent whole, std::byte* tiles, std::byte* turned) const noexcept {
  // What lies together as a tile already is not read into one, and what is written as it is goes right where it belongs. (Elements of less
  // than four bytes are turned in squares of so many rows that no cache would hold a line of each until it is whole.)
  const bool in_place =
      convert_in_.is_copy() && plan_.column.source_step == 1 && plan_.row.source_step == whole.across && whole.across <= tile_across_;
  const bool out_place = stream_runs_ == nullptr && convert_out_.is_copy() && plan_.row.target_step == 1 &&
                         (tile_bytes_ >= 4 || plan_.column.target_step == whole.down);
  if (!in_place) read(source, tiles, whole);
  for (std::int64_t across = 0; across < whole.across; across += tile_across_) {
    const Extent tile{whole.down, std::min(tile_across_, whole.across - across)};
    const std::byte* const from = in_place ? source : tiles + across * whole.down * tile_bytes_;
    std::byte* const to = target + across * plan_.column.target_step * to_bytes_;
    transpose_(from, out_place ? to : turned, static_cast<std::size_t>(tile.down), static_cast<std::size_t>(tile.across),
               out_place ? plan_.column.target_step * to_bytes_ : tile.down * tile_bytes_);
    if (!out_place) write(turned, to, tile);
  }
}

void Tiles::read(const std::byte* source, std::byte* tiles, Extent panel) const noexcept {
  if (plan_.column.source_step == 1 && plan_.row.source_step == panel.across &&
      panel.across <= tile_across_)  // all rows together are one run
    return reader_(source, tiles, static_cast<std::size_t>(panel.down * panel.across));
  const std::ptrdiff_t row_bytes = plan_.row.source_step * from_bytes_;
  for (std::int64_t first = 0; first < panel.down; first += kRowsTogether) {
    const std::int64_t rows = std::min(kRowsTogether, panel.down - first);
    for (std::int64_t across = 0; across < panel.across; across += tile_across_) {
      const std::int64_t count = std::min(tile_across_, panel.across - across);
      const std::byte* const from = source + across * plan_.column.source_step * from_bytes_ + first * row_bytes;
      std::byte* const to = tiles + (across * panel.down + first * count) * tile_bytes_;
      // The rows that come next are in this panel or in the one below.
      reader_(from, row_bytes, to, count * tile_bytes_, static_cast<std::size_t>(rows), static_cast<std::size_t>(count),
              kRowsTogether * row_bytes);
    }
  }
}

void Tiles::write(const std::byte* turned, std::byte* target, Extent tile) const noexcept {
  if (stream_runs_ != nullptr) return stream(turned, target, tile);
  if (plan_.row.target_step == 1 && plan_.column.target_step == tile.down)  // all of them together are one run
    return writer_(turned, target, static_cast<std::size_t>(tile.down * tile.across));
  writer_(turned, tile.down * tile_bytes_, target, plan_.column.target_step * to_bytes_, static_cast<std::size_t>(tile.across),
          static_cast<std::size_t>(tile.down));
}

void Tiles::stream(const std::byte* turned, std::byte* target, Extent tile) const noexcept {
  const bool together = plan_.column.target_step == tile.down;  // all rows are one run
  const std::int64_t runs = together ? 1 : tile.across;
  const std::int64_t count = together ? tile.down * tile.across : tile.down;
  const std::ptrdiff_t stride = plan_.column.target_step * to_bytes_;
  if (convert_out_.is_copy())
    return stream_runs_(turned, count * to_bytes_, target, stride, static_cast<std::size_t>(runs),
                        static_cast<std::size_t>(count * to_bytes_));
  // As many rows at a time as there is room for, or parts of one.
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
                   static_cast<std::size_t>(width * to_bytes_));
    }
  }
}

}  // namespace berth

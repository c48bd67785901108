// SPDX-License-Identifier: Apache-2.0
#include "copy/tiles.h"

#include <algorithm>

namespace berth {

namespace {

// Measured on ARM64 (Neoverse V1), where a core reads ahead in 16 places: 64 rows at a time, 16 of them together, and half a kibibyte or more
// of each before the next are begun.
constexpr std::int64_t kTileSide = 64;
constexpr std::int64_t kRowsTogether = 16;
constexpr std::int64_t kTileBytes = 16 << 10;   // a turned tile stays in the first cache
constexpr std::int64_t kPanelBytes = 32 << 10;  // and a panel in the second at least

Conversion no_conversion(DType dtype) noexcept { return {.from = dtype, .to = dtype}; }
bool converts_while_reading(const Conversion& conversion) noexcept { return size_bytes(conversion.to) <= size_bytes(conversion.from); }

std::int64_t blocks(std::int64_t size, std::int64_t block) noexcept { return (size + block - 1) / block; }

}  // namespace

Tiles::Tiles(const Kernels& kernels, const Conversion& conversion, const HostPlan& plan) noexcept
    : plan_(plan),
      from_bytes_(static_cast<std::ptrdiff_t>(size_bytes(conversion.from))),
      to_bytes_(static_cast<std::ptrdiff_t>(size_bytes(conversion.to))),
      convert_in_(converts_while_reading(conversion) ? conversion : no_conversion(conversion.from)),
      convert_out_(converts_while_reading(conversion) ? no_conversion(conversion.to) : conversion),
      reader_(kernels, convert_in_, plan.column.source_step, 1),
      writer_(kernels, convert_out_, 1, plan.row.target_step),
      transpose_(kernels.transpose[size_index(size_bytes(convert_in_.to))]),
      tile_bytes_(static_cast<std::ptrdiff_t>(size_bytes(convert_in_.to))) {
  // A short axis is taken whole, and leaves more for the other.
  const std::int64_t most = kTileBytes / tile_bytes_;
  const std::int64_t side = std::min(kTileSide, most / kTileSide);
  down_ = std::min(plan.row.size, plan.column.size < side ? most / plan.column.size : side);
  tile_across_ = std::min(plan.column.size, plan.row.size < side ? most / plan.row.size : side);
  across_ = std::min(plan.column.size, std::max(kPanelBytes / (down_ * tile_bytes_) / tile_across_, std::int64_t{1}) * tile_across_);
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

  alignas(64) std::byte tiles[kPanelBytes];
  alignas(64) std::byte turned[kTileBytes];
  // What lies together as a tile already is not read into one, and what is written as it is goes right where it belongs.
  const bool in_place =
      convert_in_.is_copy() && plan_.column.source_step == 1 && plan_.row.source_step == whole.across && whole.across <= tile_across_;
  const bool out_place = convert_out_.is_copy() && plan_.row.target_step == 1;
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
  for (std::int64_t first = 0; first < panel.down; first += kRowsTogether) {
    const std::int64_t end = std::min(first + kRowsTogether, panel.down);
    for (std::int64_t across = 0; across < panel.across; across += tile_across_) {
      const std::int64_t count = std::min(tile_across_, panel.across - across);
      const std::ptrdiff_t tile_row = count * tile_bytes_;
      const std::byte* const from = source + (first * plan_.row.source_step + across * plan_.column.source_step) * from_bytes_;
      std::byte* const to = tiles + across * panel.down * tile_bytes_ + first * tile_row;
      reader_(from, plan_.row.source_step * from_bytes_, to, tile_row, static_cast<std::size_t>(end - first),
              static_cast<std::size_t>(count));
    }
  }
}

void Tiles::write(const std::byte* turned, std::byte* target, Extent tile) const noexcept {
  if (plan_.row.target_step == 1 && plan_.column.target_step == tile.down)  // all of them together are one run
    return writer_(turned, target, static_cast<std::size_t>(tile.down * tile.across));
  writer_(turned, tile.down * tile_bytes_, target, plan_.column.target_step * to_bytes_, static_cast<std::size_t>(tile.across),
          static_cast<std::size_t>(tile.down));
}

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/export.h"
#include "html/address_map.h"

// How much of each cell of a grid the boxes of a map cover, for drawings that are coarser than the map. Pure
// functions; any thread.
namespace berth::internal::html {

struct Cell {
  double covered = 0;   // share of the cell's area, 0 to 1
  double most = 0;      // the largest share of a single box
  std::size_t box = 0;  // that box; valid if `most` is not 0
};

struct Grid {
  std::size_t columns = 0;
  std::size_t rows = 0;
  std::vector<Cell> cells = {};  // row by row, the lowest addresses first

  const Cell& at(std::size_t column, std::size_t row) const { return cells[row * columns + column]; }
};

// Covers the boxes for which `chosen` is not 0; an empty span means all. O(boxes + cells) if boxes do not
// overlap.
BERTH_EXPORT Grid coverage(const AddressMap& map, std::size_t columns, std::size_t rows, std::span<const std::uint8_t> chosen = {});

// The peak of live bytes within each of `columns` equal parts of the time shown.
BERTH_EXPORT std::vector<std::uint64_t> live_columns(const AddressMap& map, std::size_t columns);

}  // namespace berth::internal::html

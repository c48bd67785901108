// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

// Folding of addresses: long unused ranges are left out of a drawing, so that the rest is visible. For any type
// with `offset` and `bytes`. Pure functions; any thread.
namespace berth::internal::html {

// A range of addresses that is left out of a drawing.
struct MapFold {
  std::uint64_t offset = 0;  // of the fold, in the drawing
  std::uint64_t bytes = 0;   // that are left out
  std::uint64_t moved = 0;   // how far this fold and those below it moved the addresses above down
  friend bool operator==(const MapFold&, const MapFold&) = default;
};

struct Folded {
  std::uint64_t bytes = 0;  // the end of the folded addresses
  std::uint64_t first = 0;  // the original lowest offset; not in MapFold::moved
  std::vector<MapFold> folds = {};
};

// Moves everything down over the addresses below the first, and over unused ranges longer than a quarter of all
// used bytes. A small gap remains of each such range, to label it. REQUIRES: offsets plus bytes fit in 64 bits.
template <class Placed>
Folded fold_offsets(std::span<Placed> all) {
  std::vector<Placed*> order;
  for (Placed& one : all) order.push_back(&one);
  std::ranges::sort(order, {}, [](const Placed* one) { return one->offset; });

  std::uint64_t used = 0;
  std::uint64_t top = 0;  // the end of the addresses seen so far
  for (const Placed* one : order) {
    const std::uint64_t end = one->offset + one->bytes;
    if (end <= top) continue;
    used += end - std::max(top, one->offset);
    top = end;
  }

  Folded folded;
  folded.first = order.empty() ? 0 : order.front()->offset;
  const std::uint64_t shown = used / 40;
  std::uint64_t moved = folded.first;
  top = folded.first;
  for (Placed* one : order) {
    if (one->offset > top && one->offset - top > used / 4) {
      const std::uint64_t at = top - moved + shown / 2;
      moved += one->offset - top - shown;
      folded.folds.push_back({at, one->offset - top, moved - folded.first});
    }
    top = std::max(top, one->offset + one->bytes);
    one->offset -= moved;
  }
  folded.bytes = top - moved;
  return folded;
}

}  // namespace berth::internal::html

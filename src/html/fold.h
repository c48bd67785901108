// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

// Addresses, folded: stretches that nothing has are left out, so that the rest can be seen. For anything with an offset and bytes.
namespace berth::internal::html {

// Addresses that are left out of a drawing.
struct MapFold {
  std::uint64_t offset = 0;  // where, as the drawing has it
  std::uint64_t bytes = 0;   // how many
  std::uint64_t moved = 0;   // how far what lies above was moved down by this fold and those below it
  friend bool operator==(const MapFold&, const MapFold&) = default;
};

struct Folded {
  std::uint64_t bytes = 0;  // where the last one ends now
  std::uint64_t first = 0;  // where the first one began; not in MapFold::moved
  std::vector<MapFold> folds = {};
};

// Moves all down over what lies below the first, and over stretches that are longer than a quarter of all that some of them have. Of each
// such stretch a little stays, as a place to say so. REQUIRES: offsets and bytes together fit in 64 bits.
template <class Placed>
Folded fold_offsets(std::span<Placed> all) {
  std::vector<Placed*> order;
  for (Placed& one : all) order.push_back(&one);
  std::ranges::sort(order, {}, [](const Placed* one) { return one->offset; });

  std::uint64_t used = 0;
  std::uint64_t top = 0;  // where the addresses end that were seen so far
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "copy/element_run.h"
#include "copy/host_plan.h"

// Planes of two axes, the source dense along one of them and the target along the other, in panels that stay in the second cache. A panel
// is read along the source's axis into tiles; each tile is transposed in the first cache, and written along the target's:
//
//     source           tile               turned           target
//     ··abcd·····      abcd               aei              ··aei··
//     ··efgh·····  →   efgh   transpose   bfj    write  →  ··bfj··
//     ··ijkl·····      ijkl       →       cgk              ··cgk··
//                                         dhl              ··dhl··
//
// So both sides are walked in runs of cache lines, each touched once, whatever the power of two between two rows. A panel is several tiles
// wide, and read by a few rows at a time, because a processor reads ahead in some sixteen places, and needs to be some lines into each to
// notice. Dtypes change where fewer bytes are then transposed.
namespace berth {

class Tiles {
 public:
  // Streamed: what is written goes past the caches (kernels.h), in larger panels.
  Tiles(const Kernels& kernels, const Conversion& conversion, const HostPlan& plan, bool streamed) noexcept;

  std::size_t per_plane() const noexcept { return static_cast<std::size_t>(blocks_down_ * blocks_across_); }  // panels
  std::size_t panel_elements() const noexcept { return static_cast<std::size_t>(down_ * across_); }

  // One panel of a plane whose first elements are given.
  void run(const std::byte* source, std::byte* target, std::size_t panel) const noexcept;

 private:
  // A part of a plane.
  struct Extent {
    std::int64_t down;
    std::int64_t across;
  };

  // Not inlined: each has a frame of its own, and a copy through the caches not the larger one. (At the definition clang would not heed it.)
  template <std::int64_t TileBytes, std::int64_t PanelBytes>
  [[gnu::noinline]] void run_in_room(const std::byte* source, std::byte* target, Extent panel) const noexcept;
  void run(const std::byte* source, std::byte* target, Extent panel, std::byte* tiles, std::byte* turned) const noexcept;
  void read(const std::byte* source, std::byte* tiles, Extent panel) const noexcept;
  void write(const std::byte* turned, std::byte* target, Extent tile) const noexcept;
  void stream(const std::byte* turned, std::byte* target, Extent tile) const noexcept;

  const HostPlan& plan_;
  std::ptrdiff_t from_bytes_;
  std::ptrdiff_t to_bytes_;
  Conversion convert_in_;   // while reading
  Conversion convert_out_;  // while writing; one of the two does nothing
  ElementRun reader_;
  ElementRun writer_;
  Transpose transpose_;
  StreamRuns stream_runs_;     // null: through the caches
  std::ptrdiff_t tile_bytes_;  // of an element of a tile
  std::int64_t down_;          // of a panel, along the target's axis: how many rows are read
  std::int64_t across_;        // along the source's axis: how long they are
  std::int64_t tile_across_;   // the same of a tile; a panel is whole tiles, but at the edge
  std::int64_t blocks_down_;
  std::int64_t blocks_across_;
};

}  // namespace berth

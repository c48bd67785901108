// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "copy/host/element_run.h"
#include "copy/host/host_plan.h"

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
// notice. Dtypes change where fewer bytes are then transposed. Where shuffling takes time, part of it is done while reading, which waits for
// memory: elements of four rows take turns in a tile, and what is transposed then is four times as long.
//
// A line that is not written whole is read first, and costs more than several that are. So where a panel ends in the middle of lines, they wait for
// the panel below.
namespace berth::internal::copy {

class Tiles {
 public:
  // Streamed: what is written goes past the caches (kernels.h), in larger panels.
  Tiles(const Kernels& kernels, const Conversion& conversion, const HostPlan& plan, bool streamed) noexcept;

  std::size_t per_plane() const noexcept { return static_cast<std::size_t>(blocks_down_ * blocks_across_); }  // panels
  std::size_t panel_elements() const noexcept { return static_cast<std::size_t>(down_ * across_); }

  // The panels from `first` to before `last` of a plane whose first elements are given.
  void run(const std::byte* source, std::byte* target, std::size_t first, std::size_t last) const noexcept;

 private:
  // A part of a plane.
  struct Extent {
    std::int64_t down;
    std::int64_t across;
  };
  struct Panel {
    std::int64_t down;  // where it begins
    std::int64_t across;
    Extent size;
  };
  struct Room {
    std::byte* tiles;   // a panel, as it was read
    std::byte* turned;  // a tile
    std::byte* ends;    // of the runs that a panel has written (Seam)
  };

  // Not inlined: each has a frame of its own, and a copy through the caches not the larger one. (At the definition clang would not heed it.)
  [[gnu::noinline]] void run_cached(const std::byte* source, std::byte* target, std::size_t first, std::size_t last) const noexcept;
  [[gnu::noinline]] void run_streamed(const std::byte* source, std::byte* target, std::size_t first, std::size_t last) const noexcept;
  void run_in_room(const std::byte* source, std::byte* target, std::size_t first, std::size_t last, const Room& room) const noexcept;
  Panel panel_at(std::size_t index) const noexcept;
  bool is_together(Extent panel) const noexcept;
  bool is_in_place(Extent panel) const noexcept;
  bool is_in_fours(Extent panel) const noexcept;
  bool has_seams(const std::byte* target) const noexcept;
  bool goes_on(const Panel& below) const noexcept;
  void run(const std::byte* source, std::byte* target, const Panel& panel, const Room& room, Seam seam) const noexcept;
  std::ptrdiff_t next_rows(std::int64_t row, const Panel& panel) const noexcept;
  void read(const std::byte* source, std::byte* tiles, const Panel& panel, bool fours) const noexcept;
  void write(const std::byte* turned, std::byte* target, Extent tile, Seam seam) const noexcept;
  void stream(const std::byte* turned, std::byte* target, Extent tile, Seam seam) const noexcept;

  const HostPlan& plan_;
  std::ptrdiff_t from_bytes_;
  std::ptrdiff_t to_bytes_;
  Conversion convert_in_;   // while reading
  Conversion convert_out_;  // while writing; one of the two does nothing
  ElementRun reader_;
  ElementRun writer_;
  Transpose transpose_;
  InterleaveFours interleave_;  // null: rows are read as they are
  Transpose transpose_fours_;   // what was interleaved
  // The same, for elements as long as a vector that go right where they belong; null: others.
  TransposeToLines transpose_to_lines_;
  StreamRuns stream_runs_;     // null: through the caches
  std::ptrdiff_t tile_bytes_;  // of an element of a tile
  std::int64_t down_;          // of a panel, along the target's axis: how many rows are read
  std::int64_t across_;        // along the source's axis: how long they are
  std::int64_t tile_across_;   // the same of a tile; a panel is whole tiles, but at the edge
  std::int64_t blocks_down_;
  std::int64_t blocks_across_;
};

}  // namespace berth::internal::copy

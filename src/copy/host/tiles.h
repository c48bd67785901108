// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "copy/host/element_run.h"
#include "copy/host/host_plan.h"

// Blocked transpose of planes of two axes, the source dense along one of them and the target along the other,
// in panels that stay in the L2 cache. A panel is read along the source's axis into tiles; each tile is
// transposed in the L1 cache, and written along the target's axis. Immutable; any thread.
//
//     source           tile               turned           target
//     ··abcd·····      abcd               aei              ··aei··
//     ··efgh·····  →   efgh   transpose   bfj    write  →  ··bfj··
//     ··ijkl·····      ijkl       →       cgk              ··cgk··
//                                         dhl              ··dhl··
//
// So both sides are walked in runs of cache lines, each touched once, even if rows are a power of two apart. A
// panel is several tiles wide, and read a few rows at a time, because a processor prefetches some sixteen
// streams, and needs a few lines of each to detect it. Dtypes are converted on the side that leaves fewer bytes
// to transpose. Where shuffling takes time, part of it is done while reading, which waits for memory: elements
// of four rows are interleaved in a tile, and the elements to transpose are then four times as long.
//
// A partial write of a cache line triggers a read-for-ownership, and costs more than several full-line writes.
// So where a panel ends in the middle of lines, those lines wait for the panel below (Seam).
namespace berth::internal::copy {

class Tiles {
 public:
  // `streamed`: uses non-temporal stores (kernels.h) and larger panels.
  Tiles(const Kernels& kernels, const Conversion& conversion, const HostPlan& plan, bool streamed) noexcept;

  // Panels per plane.
  std::size_t per_plane() const noexcept { return static_cast<std::size_t>(blocks_down_ * blocks_across_); }
  std::size_t panel_elements() const noexcept { return static_cast<std::size_t>(down_ * across_); }

  // Copies the panels [first, last) of a plane; source and target point to its first elements.
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
    std::byte* ends;    // the ends of the runs that a panel has written (Seam)
  };

  // Not inlined: each has its own stack frame, so that a copy through the caches does not pay for the larger
  // one. (clang ignores the attribute at the definition.)
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
  Transpose transpose_fours_;   // of interleaved rows
  // The same, for vector-sized elements that are written directly to the target; null for others.
  TransposeToLines transpose_to_lines_;
  StreamRuns stream_runs_;     // null: through the caches
  std::ptrdiff_t tile_bytes_;  // of an element of a tile
  std::int64_t down_;          // height of a panel, along the target's axis: the number of rows read
  std::int64_t across_;        // width of a panel, along the source's axis: the length of the rows
  std::int64_t tile_across_;   // width of a tile; a panel is whole tiles, except at the edge
  std::int64_t blocks_down_;
  std::int64_t blocks_across_;
};

}  // namespace berth::internal::copy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "berth/base/units.h"
#include "memory/space/extents.h"
#include "memory/space/page_plan.h"
#include "memory/space/page_view.h"
#include "memory/space/piece_borders.h"

// A pool's range as a drawing, one letter for each cell, with a view of it and no device:
//
//     L live    C cached    1 2 3 cached, freed on that stream    b bare    t in transit    T with memory
//
//     DrawnRange range("LCCbLtttL");        // the part for large blocks; behind the drawing it is bare
//
// The most that was ever live is what is live now, and nothing may be committed beyond that; tests change the
// view as they need it.
namespace berth::testing {

inline constexpr std::size_t kPage = 1_MiB;

class DrawnRange {
  using Extents = internal::memory::Extents;
  using ExtentState = internal::memory::ExtentState;
  using PageSpan = internal::memory::PageSpan;
  using PageView = internal::memory::PageView;
  using PoolExtent = internal::memory::PoolExtent;

 public:
  static constexpr std::size_t kUnit = 64_KiB;
  static constexpr std::size_t kSplit = 256_MiB;
  static constexpr std::size_t kEnd = 1_GiB;
  static constexpr std::uint32_t kStreams = 4;

  explicit DrawnRange(std::string_view large, std::string_view slabs = "", std::size_t cell_bytes = kPage) : cell_(cell_bytes) {
    nodes_.reserve(2);
    parts_[0] = std::make_unique<Extents>(nodes_, 0, kSplit, kPage);
    parts_[1] = std::make_unique<Extents>(nodes_, kSplit, kEnd, kPage);
    for (const auto& part : parts_) part->add_stream(kStreams - 1);
    view.rules = {.page_bytes = kPage, .unit_bytes = kUnit, .page_bound = 1, .edge_bound = 1};
    view.parts = {parts_[0].get(), parts_[1].get()};
    view.borders = &borders_;
    view.base = std::uintptr_t{1} << 40;
    view.split = kSplit;
    draw(*parts_[0], 0, slabs);
    draw(*parts_[1], kSplit, large);
    view.peak_live = view.live;
    borders_.open(kEnd, kPage, kEnd);
  }

  // [first, last) of the drawing of large blocks.
  PageSpan cells(std::size_t first, std::size_t last) const { return {kSplit + first * cell_, kSplit + last * cell_}; }
  PageSpan slab_cells(std::size_t first, std::size_t last) const { return {first * cell_, last * cell_}; }

  // These cells were committed as one piece.
  void commit_piece(std::size_t first, std::size_t last) {
    borders_.committed(cells(first, last).begin, (last - first) * cell_);
    view.rules.piece_bytes = kEnd;
  }

  // The first extent in transit.
  PoolExtent* transit() const {
    PoolExtent* e = parts_[1]->front();
    while (e != nullptr && e->state != ExtentState::transit) e = e->next;
    return e;
  }
  std::size_t transit_end() const {
    const PoolExtent* e = transit();
    while (e->next != nullptr && e->next->state == ExtentState::transit) e = e->next;
    return e->end();
  }

  // A request to fill all that is in transit.
  internal::memory::FillRequest request(std::uint32_t stream = 0) const {
    return {.first = transit(), .end = transit_end(), .block = {transit()->begin, transit_end()}, .stream = stream};
  }

  const PoolExtent* extent_at(std::size_t offset) const {
    const PoolExtent* e = view.part_of(offset).front();
    while (e->end() <= offset) e = e->next;
    return e;
  }

  void cut_out(const PageSpan& span, std::uint32_t stream) {
    nodes_.reserve(Extents::kNodesPerCut);
    Extents& part = *parts_[span.begin < kSplit ? 0 : 1];
    part.cut(part.tree(stream).covering(span.begin), span.begin, span.bytes(), ExtentState::live);
  }

  // The complete state of the extents, for comparison.
  std::string text() const {
    std::string all;
    for (const auto& part : parts_) {
      for (const PoolExtent* e = part->front(); e != nullptr; e = e->next) {
        for (const std::uint64_t fact :
             {std::uint64_t{e->begin}, std::uint64_t{e->bytes}, std::uint64_t{e->index}, std::uint64_t{e->stream}, std::uint64_t{e->point},
              std::uint64_t{e->has_memory}, static_cast<std::uint64_t>(e->state)})
          all += std::to_string(fact) + ' ';
      }
      all += part->audit() + '\n';
    }
    return all;
  }

  PageView view;

 private:
  void draw(Extents& part, std::size_t begin, std::string_view letters) {
    for (std::size_t i = 0; i < letters.size();) {
      std::size_t last = i + 1;
      while (last < letters.size() && letters[last] == letters[i]) ++last;
      if (letters[i] != 'b') make(part, letters[i], begin + i * cell_, (last - i) * cell_);
      i = last;
    }
  }

  void make(Extents& part, char letter, std::size_t begin, std::size_t bytes) {
    nodes_.reserve(Extents::kNodesPerCut);
    PoolExtent* const e = part.cut(part.bare_tree().covering(begin), begin, bytes, ExtentState::transit);
    if (letter == 't') return;
    e->has_memory = true;
    view.committed += bytes;
    if (letter == 'L') {
      e->state = ExtentState::live;
      view.live += bytes;
    } else if (letter != 'T') {
      const auto stream = static_cast<std::uint32_t>(letter == 'C' ? 0 : letter - '0');
      part.free_cached(e, stream, 10 * stream);
    }
  }

  std::size_t cell_;
  Extents::Nodes nodes_;
  std::array<std::unique_ptr<Extents>, 2> parts_;
  internal::memory::PieceBorders borders_;
};

}  // namespace berth::testing

namespace berth::internal::memory {

inline void PrintTo(const PageSpan& span, std::ostream* out) {
  *out << '[' << span.begin / testing::DrawnRange::kUnit << ", " << span.end / testing::DrawnRange::kUnit << ") units";
}

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "berth/base/units.h"
#include "memory/space/piece_cut.h"
#include "memory/space/piece_length.h"
#include "memory/space/pins.h"
#include "support/drawn_range.h"
#include "support/scale.h"

namespace berth::testing {
namespace {

using namespace internal::memory;
using internal::base::Random;

// ---- how long pieces are

class PieceLength : public ::testing::Test {
 protected:
  PieceLength() { view_.rules = {.page_bytes = 2_MiB, .unit_bytes = 2_MiB, .piece_bytes = 128_MiB}; }

  // The lengths of all pieces for a block that has no memory yet.
  std::vector<std::size_t> lengths(const PageSpan& block) const {
    std::vector<std::size_t> all;
    PageSpan missing{align_down(block.begin, 2_MiB), round_up(block.end, 2_MiB)};
    for (; !missing.empty(); missing.begin += all.back()) all.push_back(piece_length(view_, missing, block));
    return all;
  }

  PageView view_;
};

using Lengths = std::vector<std::size_t>;

TEST_F(PieceLength, AllOfAShortBlockIsOne) {
  EXPECT_EQ(lengths({4_MiB, 5_MiB}), Lengths{2_MiB});
  EXPECT_EQ(lengths({4_MiB, 34_MiB}), Lengths{30_MiB});
}

TEST_F(PieceLength, ALongBlockHasItsOwnFromItsFirstWholePageToItsLast) {
  EXPECT_EQ(lengths({64_MiB, 104_MiB}), (Lengths{32_MiB, 8_MiB}));
  EXPECT_EQ(lengths({65_MiB, 105_MiB}), (Lengths{2_MiB, 32_MiB, 6_MiB, 2_MiB}));
  EXPECT_EQ(lengths({64_MiB, 96_MiB + 4_KiB}), (Lengths{32_MiB, 2_MiB}));
}

TEST_F(PieceLength, AVeryLongBlockHasFew) {
  EXPECT_EQ(lengths({0, 4_GiB}), Lengths(32, 128_MiB));
  EXPECT_EQ(lengths({0, 2_GiB}), Lengths(32, 64_MiB));
}

TEST_F(PieceLength, IsAllThatIsMissingWherePiecesCostByTheirBytes) {
  view_.rules.host_access = true;
  EXPECT_EQ(lengths({0, 4_GiB}), Lengths{4_GiB});
}

// ---- what is cut

class Cut : public ::testing::Test {
 protected:
  static DrawnRange tight(const char* drawing) {
    DrawnRange range(drawing);
    range.view.rules.piece_bytes = 512 * kPage;
    range.view.cuts_matter = true;
    return range;
  }
  static std::optional<PieceCut> plan(const DrawnRange& range, std::size_t first, std::size_t last) {
    const PageSpan block = range.cells(first, last);
    return plan_cut(range.view, *range.extent_at(block.begin), block);
  }
};

TEST_F(Cut, IsAtTheEndOfTheBlock) {
  DrawnRange range = tight("LCCCCCCL");
  range.commit_piece(1, 7);
  const auto cut = plan(range, 1, 3);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->front(), range.cells(1, 3));
  EXPECT_EQ(cut->back(), range.cells(3, 7));
  EXPECT_EQ(cut->spared, 4 * kPage);
}

TEST_F(Cut, IsBehindThePageThatTheBlockEndsIn) {
  DrawnRange range = tight("LCCCCCCL");
  range.commit_piece(1, 7);
  const PageSpan cells = range.cells(1, 3);
  const auto cut = plan_cut(range.view, *range.extent_at(cells.begin), {cells.begin, cells.end + 4_KiB});
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->front(), range.cells(1, 4));
}

TEST_F(Cut, IsAtTheBeginOfABlockThatEndsWithAPiece) {
  DrawnRange range = tight("LCCCCCCL");
  range.commit_piece(1, 4);
  range.commit_piece(4, 7);
  const auto cut = plan(range, 2, 4);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->piece, range.cells(1, 4));
  EXPECT_EQ(cut->front(), range.cells(1, 2));
}

TEST_F(Cut, SparesPiecesThatTheBlockFillsOrThatAreInUse) {
  DrawnRange range = tight("LCCCCCCL");
  range.commit_piece(0, 3);
  range.commit_piece(3, 5);
  range.commit_piece(5, 8);
  EXPECT_FALSE(plan(range, 1, 5)) << "the first piece is pinned already";
  EXPECT_FALSE(plan(range, 3, 5));
  EXPECT_FALSE(plan(range, 3, 6)) << "the last one, too";
}

TEST_F(Cut, IsOnlyMadeWhereItMattersAndCanBe) {
  DrawnRange range = tight("LCCCCCC1111L");
  range.commit_piece(1, 7);
  range.commit_piece(7, 11);
  EXPECT_TRUE(plan(range, 1, 3));
  EXPECT_EQ(plan(range, 1, 3)->point, 0U);
  const std::uint64_t point = range.extent_at(range.cells(7, 8).begin)->point;
  ASSERT_NE(point, 0U);
  EXPECT_EQ(plan(range, 7, 9)->point, point) << "the stream may still use the piece";
  range.view.cuts_matter = false;
  EXPECT_FALSE(plan(range, 1, 3));
  range.view.cuts_matter = range.view.rules.fixed_pages = true;
  EXPECT_FALSE(plan(range, 1, 3));
}

TEST_F(Cut, IsAtTheEndsOfAWindow) {
  DrawnRange range = tight("LCCCCbbbCCCCL");
  range.commit_piece(1, 5);
  range.commit_piece(8, 12);
  const auto cut_of = [&](std::size_t first, std::size_t last) {
    const PageSpan block = range.cells(first, last);
    return plan_cut(range.view, PageWindow{.begin = block.begin, .bytes = block.bytes(), .first = range.extent_at(block.begin)});
  };
  EXPECT_EQ(cut_of(3, 7)->front(), range.cells(1, 3)) << "at its begin";
  EXPECT_EQ(cut_of(6, 10)->back(), range.cells(10, 12)) << "at its end";
  EXPECT_FALSE(cut_of(1, 12)) << "it covers both pieces";
  EXPECT_FALSE(cut_of(5, 8)) << "it touches none";
}

// ---- what is pinned

// The state of each grain of a range, and the pieces, one by one.
class PinsModel {
 public:
  explicit PinsModel(std::uint64_t seed) : random_(seed), live_(kPages * kGrains) {
    borders_.open(kPages * kPageBytes, kPageBytes, kPages * kPageBytes);
    pins_.open(kPages * kPageBytes, kPageBytes);
    for (std::size_t page = 0; page < kPages;) {
      const std::size_t length = std::min(kPages - page, 1 + random_.below(6));
      borders_.committed(page * kPageBytes, length * kPageBytes);
      pieces_.push_back({page, page + length});
      page += length;
    }
  }

  void step() {
    if (!blocks_.empty() && random_.one_in(2)) {
      std::swap(blocks_[random_.below(blocks_.size())], blocks_.back());
      set(blocks_.back(), false);
      blocks_.pop_back();
      return;
    }
    const std::size_t begin = random_.below(live_.size());
    std::size_t end = begin;
    const std::size_t most = begin + 1 + random_.below(5 * kGrains);
    while (end < std::min(most, live_.size()) && !live_[end]) ++end;
    if (end == begin) return;
    blocks_.push_back({begin, end});
    set(blocks_.back(), true);
  }

  std::size_t expected() const {
    std::size_t pinned = 0;
    for (const PageSpan& piece : pieces_) {
      const auto first = live_.begin() + static_cast<std::ptrdiff_t>(piece.begin * kGrains);
      const auto last = live_.begin() + static_cast<std::ptrdiff_t>(piece.end * kGrains);
      const auto live = static_cast<std::size_t>(std::count(first, last, true));
      if (piece.bytes() > 1 && live > 0) pinned += static_cast<std::size_t>(last - first) - live;
    }
    return pinned * kGrain;
  }
  std::size_t counted() const { return pins_.bytes(); }

 private:
  static constexpr std::size_t kGrain = 4_KiB;
  static constexpr std::size_t kGrains = 16;  // of a page
  static constexpr std::size_t kPageBytes = kGrains * kGrain;
  static constexpr std::size_t kPages = 200;

  void set(const PageSpan& block, bool live) {
    std::fill(live_.begin() + static_cast<std::ptrdiff_t>(block.begin), live_.begin() + static_cast<std::ptrdiff_t>(block.end), live);
    const PageSpan bytes{block.begin * kGrain, block.end * kGrain};
    live ? pins_.add(borders_, bytes) : pins_.remove(borders_, bytes);
  }

  Random random_;
  PieceBorders borders_;
  Pins pins_;
  std::vector<PageSpan> pieces_;  // in pages
  std::vector<bool> live_;
  std::vector<PageSpan> blocks_;  // in grains
};

TEST(Pins, AgreeWithEveryGrainOfARange) {
  const std::uint64_t steps = scaled(100'000, 2000);
  PinsModel model(seed());
  std::size_t most = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    model.step();
    ASSERT_EQ(model.counted(), model.expected()) << "at step " << step << ", seed " << seed();
    most = std::max(most, model.counted());
  }
  EXPECT_GT(most, 1_MiB) << "nothing was ever pinned";
  did(std::to_string(steps) + " steps, seed " + std::to_string(seed()));
}

}  // namespace
}  // namespace berth::testing

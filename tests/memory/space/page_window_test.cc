// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_window.h"

#include <gtest/gtest.h>

#include <string>

#include "support/drawn_range.h"

// Which addresses a block gets, in drawn ranges.
namespace berth::testing {

using namespace internal::memory;
namespace {

PageSpan window_of(const DrawnRange& range, std::size_t pages, std::uint32_t stream = 0, std::size_t alignment = kPageGrain) {
  const std::string before = range.text();
  const PageWindow window = find_window(range.view, PagePart::large, pages * kPage, alignment, stream);
  EXPECT_EQ(range.text(), before);
  return window.first == nullptr ? PageSpan{} : PageSpan{window.begin, window.begin + window.bytes};
}

TEST(PageWindow, IsWhereTheLeastMemoryIsMissing) {
  const DrawnRange range("LCbbLCCbLbbbL");
  EXPECT_EQ(window_of(range, 3), range.cells(5, 8));
  const PageWindow window = find_window(range.view, PagePart::large, 3 * kPage, kPageGrain, 0);
  EXPECT_EQ(window.missing, kPage);
  EXPECT_EQ(window.extents, 2U);
  EXPECT_EQ(window.first, range.extent_at(range.cells(5, 6).begin));
}

TEST(PageWindow, IsTheLowestOfEqualOnes) {
  const DrawnRange range("LbCLCbLbCL");
  EXPECT_EQ(window_of(range, 2), range.cells(1, 3));
}

TEST(PageWindow, MayBeginAndEndInsideAnExtent) {
  const DrawnRange range("LbbbbCL");
  EXPECT_EQ(window_of(range, 2), range.cells(4, 6)) << "it ends with the cached extent";
  const DrawnRange other("LCbbbbL");
  EXPECT_EQ(window_of(other, 2), other.cells(1, 3));
}

TEST(PageWindow, CountsMissingMemoryInWholePages) {
  const DrawnRange range("LCbL", "", kPage / 2);
  const PageWindow window = find_window(range.view, PagePart::large, kPage, kPageGrain, 0);
  EXPECT_EQ(window.begin, range.cells(1, 2).begin);
  EXPECT_EQ(window.missing, kPage / 2) << "no further than the extent goes";
}

TEST(PageWindow, HasTheAlignmentAskedFor) {
  const DrawnRange range("LbbbbbbbbL");
  EXPECT_EQ(window_of(range, 2, 0, 4 * kPage), range.cells(4, 6));
}

TEST(PageWindow, UsesWhatWasFreedOnItsOwnStreamAlone) {
  const DrawnRange range("L11bL22bL");
  EXPECT_EQ(window_of(range, 3, 2), range.cells(5, 8));
  EXPECT_EQ(window_of(range, 3, 1), range.cells(1, 4));
  EXPECT_EQ(window_of(range, 3, 3), range.cells(9, 12)) << "behind everything";
}

TEST(PageWindow, ThereIsNoneWhereNoRunIsLongEnough) {
  const DrawnRange range("LbbL");
  EXPECT_EQ(window_of(range, (DrawnRange::kEnd - DrawnRange::kSplit) / kPage), PageSpan{});
}

// Runs past the bound are not searched, except for one that surely fits.
TEST(PageWindow, LooksAtAFewRunsOnly) {
  std::string many;
  for (int i = 0; i < 70; ++i) many += "Lb";
  const DrawnRange range(many + "LCbL");
  EXPECT_EQ(window_of(range, 2), range.cells(144, 146)) << "the end of the range, though less is missing elsewhere";
}

TEST(PageWindow, BehindAnExtentEndsWhereAnotherBegins) {
  const DrawnRange range("LC1bL");
  const PoolExtent& live = *range.extent_at(range.cells(0, 1).begin);
  EXPECT_EQ(window_behind(live, kPage, 0).missing, 0U);
  EXPECT_EQ(window_behind(live, 2 * kPage, 0).first, nullptr) << "another stream may be at work there";
  const PageWindow window = window_behind(live, 3 * kPage, 1);
  EXPECT_EQ(window.begin, live.end());
  EXPECT_EQ(window.missing, kPage);
  EXPECT_EQ(window.extents, 3U);
  EXPECT_EQ(window_behind(live, 4 * kPage, 1).first, nullptr);
}

TEST(PageWindow, IsCommittedAheadOnlyWherePiecesCost) {
  DrawnRange range("LbbbbL");
  range.view.peak_live = 640 * kPage;
  const PageWindow window = find_window(range.view, PagePart::large, 2 * kPage, kPageGrain, 0);
  EXPECT_EQ(plan_ahead(range.view, window), 0U);
  range.view.rules.piece_bytes = 16 * kPage;
  EXPECT_EQ(plan_ahead(range.view, window), 18 * kPage) << "a small part of the peak";
  range.view.room = 5 * kPage;
  EXPECT_EQ(plan_ahead(range.view, window), 3 * kPage) << "within the limit";
  range.view.rules.host_access = true;
  EXPECT_EQ(plan_ahead(range.view, window), 0U);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_trim.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/drawn_range.h"

// What is decommitted, in drawn ranges.
namespace berth::testing {

using namespace internal::memory;
namespace {

// Everything that a trim would decommit, and a view that accounts for it.
std::vector<PageSpan> trimmed(DrawnRange& range, Trim trim) {
  std::vector<PageSpan> spans;
  for (;;) {
    const std::string before = range.text();
    const PageSpan span = next_to_trim(range.view, trim);
    EXPECT_EQ(range.text(), before);
    if (span.empty()) return spans;
    spans.push_back(span);
    range.cut_out(span, 0);
    range.view.committed -= span.bytes();
  }
}

TEST(PageTrim, GoesFromTheHighestAddressDown) {
  DrawnRange range("LCCLCL11L", "LCL");
  EXPECT_EQ(trimmed(range, {.grain = kPage}), (std::vector{range.cells(4, 5), range.cells(1, 3), range.slab_cells(1, 2)}))
      << "what a stream may be at work on stays";
}

TEST(PageTrim, KeepsWhatItIsToldTo) {
  DrawnRange range("LCCLCL", "LCL");
  EXPECT_EQ(trimmed(range, {.keep = 2 * kPage, .grain = kPage}), (std::vector{range.cells(4, 5), range.cells(2, 3)}));
  DrawnRange other("LCCLCL");
  EXPECT_EQ(trimmed(other, {.grain = kPage, .most_spans = 1}), (std::vector{other.cells(4, 5)}));
}

TEST(PageTrim, LeavesPagesWholeWhereItIsToldTo) {
  DrawnRange range("LCCLLCCL", "", kPage / 2);
  EXPECT_EQ(trimmed(range, {.grain = kPage}), std::vector<PageSpan>{});
  EXPECT_EQ(trimmed(range, {.grain = kPage / 2}), (std::vector{range.cells(5, 7), range.cells(1, 3)}));
}

TEST(PageTrim, TakesWholePieces) {
  DrawnRange range("LCCCCLCCL");
  range.commit_piece(1, 2);
  range.commit_piece(2, 5);
  range.commit_piece(6, 9);  // of which some is live
  EXPECT_EQ(trimmed(range, {.grain = kPage}), (std::vector{range.cells(2, 5), range.cells(1, 2)}));
}

TEST(PageTrim, AfterARefusalTriesPiecesOfTheOtherPart) {
  DrawnRange range("LCL", "LCL");
  Trim trim{.grain = kPage};
  EXPECT_EQ(next_to_trim(range.view, trim), range.cells(1, 2));
  EXPECT_FALSE(goes_on_after_refusal(range.view, trim));
  range.commit_piece(1, 2);
  EXPECT_TRUE(goes_on_after_refusal(range.view, trim));
  EXPECT_EQ(trim.part, PagePart::slabs);
  EXPECT_FALSE(goes_on_after_refusal(range.view, trim));
}

TEST(PageTrim, AroundARangeTakesThePagesThatItTouches) {
  const DrawnRange range("LCCCCCCL", "", kPage / 2);
  PageSpan rest = range.cells(3, 4);
  EXPECT_EQ(next_to_trim_around(range.view, rest), range.cells(2, 4));
  EXPECT_EQ(next_to_trim_around(range.view, rest), PageSpan{});
  rest = range.cells(1, 2);
  EXPECT_EQ(next_to_trim_around(range.view, rest), range.cells(1, 2)) << "no further than what is free";
  rest = range.cells(0, 1);
  EXPECT_EQ(next_to_trim_around(range.view, rest), PageSpan{}) << "in use after all";
}

TEST(PageTrim, AroundARangeTakesPiecesThatAreFree) {
  DrawnRange range("LCCCCCCL");
  range.commit_piece(0, 2);
  range.commit_piece(2, 4);
  range.commit_piece(4, 6);
  range.commit_piece(6, 8);
  PageSpan rest = range.cells(1, 5);
  EXPECT_EQ(next_to_trim_around(range.view, rest), range.cells(2, 4));
  EXPECT_EQ(next_to_trim_around(range.view, rest), range.cells(4, 6));
  EXPECT_EQ(next_to_trim_around(range.view, rest), PageSpan{});
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "support/drawn_range.h"

// Where a pool decides to get memory from, in drawn ranges and without a device.
namespace berth::internal::memory {

void PrintTo(const FillStep& step, std::ostream* out) {
  *out << "kind " << static_cast<int>(step.kind) << " from ";
  PrintTo(step.source, out);
  *out << " to ";
  PrintTo(step.target, out);
  *out << " stream " << step.stream << " loan " << step.loan;
}

}  // namespace berth::internal::memory

namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

using Kind = FillStep::Kind;
using Steps = std::vector<FillStep>;
// ---- where memory comes from

Steps plan_of(const DrawnRange& range, const FillRequest& request) {
  const std::string before = range.text();
  const FillPlan plan = plan_fill(range.view, request);
  EXPECT_EQ(range.text(), before) << "planning has changed something";
  return {plan.steps().begin(), plan.steps().end()};
}
Steps plan_of(const DrawnRange& range, std::uint32_t stream = 0) { return plan_of(range, range.request(stream)); }

FillStep step_of(Kind kind, PageSpan source, PageSpan target, std::uint32_t stream = 0) {
  return {.kind = kind, .source = source, .target = target, .stream = stream};
}

TEST(PagePlan, CommitsWhileThatIsWithinTheBound) {
  DrawnRange range("LLCCLttttL");
  range.view.peak_live = 100 * kPage;
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::commit, {}, range.cells(5, 9))}));
  EXPECT_EQ(plan_of(range)[0].claims(), 4 * kPage);
}

TEST(PagePlan, BeyondItMovesWholePagesFromTheHighestAddress) {
  const DrawnRange range("LLCCLCCCLttttL");
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::move, range.cells(5, 8), range.cells(9, 12)),
                                   step_of(Kind::move, range.cells(3, 4), range.cells(12, 13))}));
  EXPECT_EQ(plan_of(range)[0].claims(), 0U);
}

TEST(PagePlan, TakesSlabsPartLast) {
  const DrawnRange range("CLttttL", "LCCL");
  EXPECT_EQ(plan_of(range),
            (Steps{step_of(Kind::move, range.cells(0, 1), range.cells(2, 3)),
                   step_of(Kind::move, range.slab_cells(1, 3), range.cells(3, 5)), step_of(Kind::commit, {}, range.cells(5, 6))}));
}

TEST(PagePlan, MovesOnlyWhatIsBeyondTheBound) {
  DrawnRange range("LCCCCLttttL");
  range.view.peak_live = range.view.committed + kPage;
  EXPECT_EQ(plan_of(range),
            (Steps{step_of(Kind::move, range.cells(2, 5), range.cells(6, 9)), step_of(Kind::commit, {}, range.cells(9, 10))}));
}

TEST(PagePlan, CountsTheBlockAndNotThePagesAroundIt) {
  DrawnRange range("LLLCCCLttttL");  // 12 pages, of which the block makes 8 or 9 live
  range.view.rules.page_bound = range.view.rules.edge_bound = 1.4;
  range.view.rules.scattered_bound = 100;
  FillRequest request = range.request();
  request.block.end = request.block.begin + 3 * kPage;
  EXPECT_EQ(plan_of(range, request),
            (Steps{step_of(Kind::move, range.cells(5, 6), range.cells(7, 8)), step_of(Kind::commit, {}, range.cells(8, 11))}))
      << "one of them is beyond the bound in part";
  request.block.end = request.block.begin + 4 * kPage;
  EXPECT_EQ(plan_of(range, request), (Steps{step_of(Kind::commit, {}, range.cells(7, 11))}));
}

// Where a page is missing in part, no whole one fits; behind it one does.
TEST(PagePlan, LooksForPagesBehindAShortTarget) {
  DrawnRange range("LLCCLLtTttttLL", "", kPage / 2);
  range.view.rules.scattered_bound = 100;
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::commit, {}, range.cells(6, 7)), step_of(Kind::move, range.cells(2, 4), range.cells(8, 10)),
                                   step_of(Kind::commit, {}, range.cells(10, 12))}));
  DrawnRange scattered("LCCLLLtTttttLL", "", kPage / 2);
  scattered.view.rules.scattered_bound = 1;
  EXPECT_EQ(plan_of(scattered), (Steps{step_of(Kind::commit, {}, scattered.cells(6, 7)),
                                       step_of(Kind::move_edge, scattered.cells(1, 3), scattered.cells(8, 10)),
                                       step_of(Kind::commit, {}, scattered.cells(10, 12))}));
}

TEST(PagePlan, MovesWhenTheBudgetHasNoRoom) {
  DrawnRange range("LCCLttL");
  range.view.peak_live = 100 * kPage;
  range.view.room = kPage;
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::move, range.cells(1, 3), range.cells(4, 6))}));
}

TEST(PagePlan, MovesEveryPageWhenMemoryIsShort) {
  DrawnRange range("LCLttL");
  range.view.peak_live = 100 * kPage;
  FillRequest request = range.request();
  request.all_pages = true;
  EXPECT_EQ(plan_of(range, request),
            (Steps{step_of(Kind::move, range.cells(1, 2), range.cells(3, 4)), step_of(Kind::commit, {}, range.cells(4, 5))}));
}

TEST(PagePlan, TakesOneExtentForSeveralTargets) {
  const DrawnRange range("LCCCCCLttTtttL");
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::move, range.cells(4, 6), range.cells(7, 9)),
                                   step_of(Kind::move, range.cells(1, 4), range.cells(10, 13))}));
}

TEST(PagePlan, MovesNoPageThatIsPartlyLive) {
  const DrawnRange range("LCCLCCLLttttLL", "", kPage / 2);  // pages begin at even cells
  EXPECT_EQ(plan_of(range),
            (Steps{step_of(Kind::move, range.cells(4, 6), range.cells(8, 10)), step_of(Kind::commit, {}, range.cells(10, 12))}));
}

TEST(PagePlan, MovesEdgesAtALimitedRate) {
  DrawnRange range("LCCLLCLLttttLL", "", kPage / 2);
  range.view.handed_out = 100 * kPage;
  EXPECT_EQ(plan_of(range),
            (Steps{step_of(Kind::move_edge, range.cells(5, 6), range.cells(8, 9)),
                   step_of(Kind::move_edge, range.cells(1, 3), range.cells(9, 11)), step_of(Kind::commit, {}, range.cells(11, 12))}));
  range.view.moved_edges = kPage;
  range.view.rules.scattered_bound = 100;
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::commit, {}, range.cells(8, 12))})) << "a hundredth of what was handed out";
  FillRequest request = range.request();
  request.all_pages = true;
  EXPECT_EQ(plan_of(range, request).size(), 3U) << "memory is short";
}

// Spans of 16 units without a whole page; one of 8 stays.
TEST(PagePlan, BeyondAnotherBoundMovesAllThatIsLongEnough) {
  DrawnRange range("LCCLLCCLCLttttttLL", "", kPage / 2);
  range.view.rules.scattered_bound = 1;
  const Steps steps = plan_of(range);
  ASSERT_EQ(steps.size(), 3U);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(steps[i].kind, Kind::move_edge);
    EXPECT_TRUE(steps[i].source == range.cells(1, 3) || steps[i].source == range.cells(5, 7));
    EXPECT_EQ(steps[i].target, range.cells(10 + 2 * i, 12 + 2 * i));
  }
  EXPECT_NE(steps[0].source, steps[1].source);
  EXPECT_EQ(steps[2], step_of(Kind::commit, {}, range.cells(14, 16)));
  range.view.rules.scattered_bound = 100;
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::commit, {}, range.cells(10, 16))}));
}

// Before a request is refused, what is long is moved; on a host, short spans are exchanged for fresh pages.
TEST(PagePlan, ExchangesShortSpansOfAHost) {
  DrawnRange range("LCCLCLtttLL", "", kPage / 4);
  FillRequest request = range.request();
  request.all_pages = true;
  const auto short_source = [&](Kind kind) {
    return Steps{step_of(Kind::move_edge, range.cells(1, 3), range.cells(6, 8)), step_of(kind, range.cells(4, 5), range.cells(8, 9))};
  };
  EXPECT_EQ(plan_of(range, request), short_source(Kind::move_edge));
  range.view.rules.host_access = true;
  EXPECT_EQ(plan_of(range, request), short_source(Kind::exchange));
}

TEST(PagePlan, MovesNoShortEdges) {
  DrawnRange range("LCLCLLttttLL", "", kPage / 8);
  range.view.handed_out = 100 * kPage;
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::commit, {}, range.cells(6, 10))}));
}

TEST(PagePlan, MovesWhatAStreamIsAtWorkOnOnlyForThatStream) {
  DrawnRange range("L1L22LCLttttL");
  range.view.echo_room = kMostSteps;
  const Steps without{step_of(Kind::move, range.cells(6, 7), range.cells(8, 9)), step_of(Kind::commit, {}, range.cells(9, 12))};
  EXPECT_EQ(plan_of(range, 2), without) << "the device cannot";
  range.view.rules.move_in_use = true;
  EXPECT_EQ(plan_of(range, 0), without);
  EXPECT_EQ(plan_of(range, 3), without);
  EXPECT_EQ(plan_of(range, 2), (Steps{without[0], step_of(Kind::move_in_use, range.cells(3, 5), range.cells(9, 11), 2),
                                      step_of(Kind::commit, {}, range.cells(11, 12))}));
  FillRequest request = range.request(2);
  request.moves_in_use = false;
  EXPECT_EQ(plan_of(range, request), without) << "the device has refused to";
  range.view.echo_room = 0;
  EXPECT_EQ(plan_of(range, 2), without) << "nobody would remember the old addresses";
}

TEST(PagePlan, LeavesNoMoreEchoesThanThereIsRoomFor) {
  DrawnRange range("L1L1L1LttttL");
  range.view.rules.move_in_use = true;
  range.view.echo_room = 2;
  const Steps steps = plan_of(range, 1);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[1].kind, Kind::move_in_use);
  EXPECT_EQ(steps[2], step_of(Kind::commit, {}, range.cells(9, 11)));
}

TEST(PagePlan, LeavesFixedPagesWhereTheyAre) {
  DrawnRange range("LCCCCLttL");
  range.view.rules.fixed_pages = true;
  range.view.room = 0;
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::commit, {}, range.cells(6, 8))}));
}

TEST(PagePlan, TakesTheShortestPieceThatIsLongEnough) {
  DrawnRange range("LCCCLCCCCCLCCLttL");
  range.commit_piece(1, 4);
  range.commit_piece(5, 10);
  range.commit_piece(11, 13);
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::move, range.cells(11, 13), range.cells(14, 16))}));
  range.commit_piece(10, 13);  // of which some is live
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::replace, range.cells(1, 4), range.cells(14, 16))})) << "longer: decommitted";
}

TEST(PagePlan, ElseTakesTheLongestPiece) {
  DrawnRange range("LCCCLCLCCLttttttL");
  range.commit_piece(1, 4);
  range.commit_piece(5, 6);
  range.commit_piece(7, 9);
  EXPECT_EQ(plan_of(range),
            (Steps{step_of(Kind::move, range.cells(1, 4), range.cells(10, 13)), step_of(Kind::move, range.cells(7, 9), range.cells(13, 15)),
                   step_of(Kind::move, range.cells(5, 6), range.cells(15, 16))}));
}

TEST(PagePlan, MovesWholePiecesOfOneExtent) {
  DrawnRange range("LCCCCLtttL");
  range.commit_piece(1, 3);
  range.commit_piece(3, 5);
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::move, range.cells(3, 5), range.cells(6, 8)),
                                   step_of(Kind::replace, range.cells(1, 3), range.cells(8, 9))}));
}

TEST(PagePlan, ReplacesNoPieceThatIsInUse) {
  DrawnRange range("L111L1LttL");
  range.commit_piece(1, 4);
  range.commit_piece(5, 6);
  range.view.rules.move_in_use = true;
  range.view.echo_room = kMostSteps;
  EXPECT_EQ(plan_of(range, 1),
            (Steps{step_of(Kind::move_in_use, range.cells(5, 6), range.cells(7, 8), 1), step_of(Kind::commit, {}, range.cells(8, 9))}));
}

TEST(PagePlan, CommitsEachPieceByItself) {
  DrawnRange range("L" + std::string(80, 't') + "L");
  range.view.rules.piece_bytes = 512 * kPage;
  EXPECT_EQ(plan_of(range), (Steps{step_of(Kind::commit, {}, range.cells(1, 33)), step_of(Kind::commit, {}, range.cells(33, 65)),
                                   step_of(Kind::commit, {}, range.cells(65, 81))}));
  range.view.rules.host_access = true;
  EXPECT_EQ(plan_of(range).size(), 1U) << "host memory costs by its bytes";
}

TEST(PagePlan, BorrowsBeforeItCommits) {
  const DrawnRange range("LCLttttTttL");
  const std::vector<Loan> loans{{.bytes = 2 * kPage}, {.bytes = 3 * kPage}};
  FillRequest request = range.request();
  request.loans = loans;
  const FillStep own = step_of(Kind::move, range.cells(1, 2), range.cells(3, 4));
  const FillStep borrowed{.kind = Kind::borrow, .target = range.cells(4, 6), .loan = 0};
  const FillStep rest = step_of(Kind::commit, {}, range.cells(6, 7));
  const FillStep other = step_of(Kind::commit, {}, range.cells(8, 10));
  EXPECT_EQ(plan_of(range, request), (Steps{own, borrowed, rest, other})) << "the second loan is longer than what is missing";
  EXPECT_EQ(borrowed.claims(), 2 * kPage);
}

TEST(PagePlan, HasABoundedNumberOfSteps) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += "LC";
  const DrawnRange range(many + "L" + std::string(100, 't') + "L");
  const Steps steps = plan_of(range);
  ASSERT_EQ(steps.size(), kMostSteps);
  EXPECT_EQ(steps.front(), step_of(Kind::move, range.cells(199, 200), range.cells(201, 202)));
  EXPECT_EQ(steps.back(), step_of(Kind::move, range.cells(73, 74), range.cells(264, 265)));
}

TEST(PagePlan, IsEmptyWhereNothingIsMissing) { EXPECT_EQ(plan_of(DrawnRange("LCLTTL")), Steps{}); }

TEST(PagePlan, ListsWhatIsMissing) {
  const DrawnRange range("LttTtL");
  std::array<std::size_t, 8> bytes{};
  EXPECT_EQ(list_missing(range.request(), bytes), 2U);
  EXPECT_EQ(bytes[0], 2 * kPage);
  EXPECT_EQ(bytes[1], kPage);
  EXPECT_EQ(list_missing(range.request(), std::span(bytes).first(1)), 1U);
}

// ---- what is lent, and taken over

std::vector<PageSpan> lent_of(const DrawnRange& range, std::vector<std::size_t> pages, std::size_t most = kMostSteps) {
  const std::string before = range.text();
  for (std::size_t& bytes : pages) bytes *= kPage;
  const LendPlan plan = plan_lend(range.view, pages, most);
  EXPECT_EQ(range.text(), before);
  return {plan.spans().begin(), plan.spans().end()};
}

TEST(PagePlan, LendsWholePagesFromTheHighestAddress) {
  const DrawnRange range("LCCL11LCCCL");
  EXPECT_EQ(lent_of(range, {2, 2, 9}), (std::vector{range.cells(8, 10), range.cells(7, 8), range.cells(2, 3), range.cells(1, 2)}));
  EXPECT_EQ(lent_of(range, {2, 2, 9}, 3).size(), 3U);
}

TEST(PagePlan, LendsNoPieceThatIsLonger) {
  DrawnRange range("LCCLCCCL");
  range.commit_piece(1, 3);
  range.commit_piece(4, 7);
  EXPECT_EQ(lent_of(range, {2, 1}), (std::vector{range.cells(1, 3)}));
}

TEST(PagePlan, LendsNoFixedPages) {
  DrawnRange range("LCCL");
  range.view.rules.fixed_pages = true;
  EXPECT_TRUE(lent_of(range, {1}).empty());
}

TEST(PagePlan, TakesPagesOverAtWholePages) {
  const DrawnRange range("LbbbLbbbbbL", "", kPage / 2);
  EXPECT_EQ(plan_adopt(range.view, kPage), range.cells(2, 4));
  EXPECT_EQ(plan_adopt(range.view, 3 * kPage / 2), range.cells(1, 4)) << "where they do not reach as far, not";
  EXPECT_EQ(plan_adopt(range.view, DrawnRange::kEnd), PageSpan{});
}

}  // namespace
}  // namespace berth::testing

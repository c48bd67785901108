// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "memory/space/page_plan.h"
#include "memory/space/page_source.h"
#include "support/drawn_range.h"
#include "support/scale.h"

// Invariants of every plan, in random ranges.
namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

using Kind = FillStep::Kind;
class RandomRange {
 public:
  explicit RandomRange(std::uint64_t seed) : random_(seed), large_(letters(20 + random_.below(200))), slabs_(letters(random_.below(30))) {
    large_ +=
        'L' + std::string(1 + random_.below(20), 't') + std::string(random_.below(3), 'T') + std::string(random_.below(90), 't') + "LC";
    cell_ = random_.one_in(2) ? kPage : kPage / 2;
    rules_ = {.page_bytes = kPage, .unit_bytes = DrawnRange::kUnit, .move_in_use = random_.one_in(2), .fixed_pages = random_.one_in(20)};
    if (random_.one_in(2)) rules_.piece_bytes = kPage << random_.below(4);
  }

  // Draws the same range each time.
  std::unique_ptr<DrawnRange> draw() const {
    auto range = std::make_unique<DrawnRange>(large_, slabs_, cell_);
    range->view.rules = rules_;
    Random pieces(large_.size());
    for (std::size_t at = 0; rules_.in_pieces() && cell_ == kPage && at < large_.size();) {
      const std::size_t last = std::min(large_.size(), at + 1 + pieces.below(4));
      range->commit_piece(at, last);
      at = last;
    }
    range->view.rules.piece_bytes = rules_.piece_bytes;
    return range;
  }

  Random& random() { return random_; }

 private:
  std::string letters(std::size_t count) {
    std::string all;
    while (all.size() < count) all += std::string(1 + random_.below(5), "LLLCCCb123"[random_.below(10)]);
    return all;
  }

  Random random_;
  std::string large_;
  std::string slabs_;
  std::size_t cell_ = kPage;
  PageRules rules_;
};

// One range is searched with what was found before as taken, the other with that cut out.
TEST(RandomPagePlan, SearchesAsIfWhatItHasTakenWereCutOut) {
  const std::uint64_t rounds = scaled(20'000, 200);
  std::uint64_t found = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    RandomRange any(seed() + round);
    const auto whole = any.draw();
    const auto cut = any.draw();
    const std::string before = whole->text();
    TakenSpans taken;
    for (std::size_t i = 0; i < 100 && taken.count() < TakenSpans::kMost; ++i) {
      Random& random = any.random();
      const SourceQuery query{.most = random.below(6 * kPage),
                              .edges = random.one_in(3),
                              .longer = random.one_in(2),
                              .stream = random.one_in(3) ? static_cast<std::uint32_t>(random.below(DrawnRange::kStreams)) : 0};
      const PageSpan source = find_source(whole->view, taken, query);
      ASSERT_EQ(source, find_source(cut->view, TakenSpans(), query)) << "round " << round << ", search " << i;
      if (source.empty()) continue;
      taken.add(source);
      cut->cut_out(source, query.stream);
      ++found;
    }
    ASSERT_EQ(whole->text(), before);
  }
  EXPECT_GT(found, rounds);
  did(std::to_string(found) + " sources in " + std::to_string(rounds) + " ranges, seed " + std::to_string(seed()));
}

// What every plan promises, whatever it decides.
void check_plan(const DrawnRange& range, const FillRequest& request, const FillPlan& plan) {
  const PoolExtent* target = request.first;
  std::size_t at = target->begin;
  std::vector<PageSpan> sources;
  bool from_outside = false;
  std::size_t loans = 0;
  for (const FillStep& step : plan.steps()) {
    while (at == target->end() || target->has_memory) {
      target = target->next;
      at = target->begin;
    }
    ASSERT_EQ(step.target.begin, at) << "targets are covered once, in order";
    ASSERT_FALSE(step.target.empty());
    at = step.target.end;
    ASSERT_LE(at, target->end());
    ASSERT_LE(at, request.end);
    ASSERT_EQ(step.claims(), step.has_source() ? 0 : step.target.bytes());
    if (step.kind == Kind::borrow) {
      ASSERT_EQ(step.loan, loans++);
      ASSERT_EQ(step.target.bytes(), request.loans[step.loan].bytes);
    }
    // But a page does not go where less is missing.
    from_outside = from_outside || (!step.has_source() && target->end() - step.target.begin >= kPage);
    ASSERT_FALSE(from_outside && step.has_source()) << "what can be moved is moved first";
    if (!step.has_source()) continue;
    ASSERT_EQ(step.kind == Kind::replace, step.source.bytes() > step.target.bytes());
    ASSERT_GE(step.source.bytes(), step.target.bytes());
    ASSERT_EQ(step.stream, step.kind == Kind::move_in_use ? request.stream : 0);
    const PoolExtent* const from = range.extent_at(step.source.begin);
    ASSERT_EQ(from->state, ExtentState::cached);
    ASSERT_EQ(from->stream, step.stream);
    ASSERT_LE(step.source.end, from->end());
    ASSERT_EQ(step.source.begin % (step.kind == Kind::move_edge ? DrawnRange::kUnit : kPage), 0U);
    sources.push_back(step.source);
  }
  std::ranges::sort(sources, {}, &PageSpan::begin);
  for (std::size_t i = 1; i < sources.size(); ++i) ASSERT_LE(sources[i - 1].end, sources[i].begin) << "taken twice";
  if (plan.count == kMostSteps) return;
  while (at == target->end() || target->has_memory) {
    target = target->next;
    if (target == nullptr || target->begin >= request.end) return;
    at = target->begin;
  }
  FAIL() << "something is still missing";
}

TEST(RandomPagePlan, HoldsForAnyRange) {
  const std::uint64_t rounds = scaled(50'000, 500);
  std::uint64_t steps = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    RandomRange any(seed() + round);
    Random& random = any.random();
    const auto range = any.draw();
    PageView& view = range->view;
    view.peak_live = view.live + random.below(100 * kPage);
    view.room = random.one_in(3) ? random.below(50 * kPage) : SIZE_MAX;
    view.handed_out = random.below(1000 * kPage);
    view.moved_edges = random.below(10 * kPage);
    view.echo_room = random.below(kMostSteps);
    std::vector<Loan> loans(random.below(5));
    for (Loan& loan : loans) loan.bytes = kPage * (1 + random.below(4));
    FillRequest request = range->request(static_cast<std::uint32_t>(random.below(DrawnRange::kStreams)));
    request.all_pages = random.one_in(3);
    request.moves_in_use = !random.one_in(5);
    request.loans = loans;
    const std::string before = range->text();
    const FillPlan plan = plan_fill(view, request);
    ASSERT_EQ(range->text(), before) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(check_plan(*range, request, plan)) << "round " << round;
    const auto in_use = std::ranges::count(plan.steps(), Kind::move_in_use, &FillStep::kind);
    ASSERT_LE(static_cast<std::size_t>(in_use), view.echo_room);
    ASSERT_TRUE(in_use == 0 || (view.rules.move_in_use && request.moves_in_use)) << "round " << round;
    ASSERT_TRUE(!view.rules.fixed_pages || plan.count == 0 || !plan.step[0].has_source()) << "round " << round;
    steps += plan.count;
  }
  did(std::to_string(steps) + " steps in " + std::to_string(rounds) + " plans, seed " + std::to_string(seed()));
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "base/axes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/pieces.h"
#include "base/random.h"
#include "copy/host/walk.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::copy;
namespace {

TEST(Loop, MergesAxesThatBothSidesWalkAsOne) {
  EXPECT_TRUE(make_loop({2, 3, 4}, {12, 4, 1}, {12, 4, 1}).is_whole());
  EXPECT_EQ(make_loop({2, 3, 4}, {12, 4, 1}, {12, 4, 1}).row().size, 24);
  const Loop half = make_loop({2, 3, 4}, {24, 4, 1}, {12, 4, 1});
  EXPECT_EQ(half.outer().size(), 1U);
  EXPECT_EQ(half.row().size, 12);
  const Loop transposed = make_loop({3, 4}, {1, 3}, {4, 1});
  EXPECT_EQ(transposed.outer().size(), 1U);
  EXPECT_FALSE(transposed.is_dense());
  EXPECT_EQ(make_loop({1, 5, 1}, {99, 1, 7}, {5, 1, 1}).row().size, 5) << "axes of size 1 vanish";
  EXPECT_EQ(make_loop(Shape(), Strides(), Strides()).row().size, 1);
  EXPECT_TRUE(make_loop(Shape(), Strides(), Strides()).is_whole());
}

TEST(Loop, WalksInTheOrderAndDirectionOfTheSideThatDecides) {
  EXPECT_TRUE(make_loop({3, 4}, {1, 3}, {1, 3}).is_whole()) << "both permuted alike";
  const Loop reversed = make_loop({2, 5}, {-5, -1}, {-5, -1});
  EXPECT_TRUE(reversed.is_whole()) << "both reversed alike";
  EXPECT_EQ(reversed.source_start, -9);
  const Loop by_target = make_loop({3, 4}, {1, 3}, {4, -1});
  EXPECT_EQ(by_target.row(), (LoopAxis{4, -3, 1}));
  EXPECT_EQ(by_target.source_start, 9);
  EXPECT_EQ(by_target.target_start, -3);
  const Loop by_source = make_loop({3, 4}, {1, 3}, {4, -1}, LoopOrder::source);
  EXPECT_EQ(by_source.row(), (LoopAxis{3, 1, 4}));
  EXPECT_EQ(by_source.source_start, 0);
  EXPECT_EQ(make_loop({3, 4}, {1, 0}, {4, 1}, LoopOrder::source).row(), (LoopAxis{3, 1, 4})) << "what repeats is outermost";
}

// Every pair of offsets that the plain loop over all indices visits, and how often.
using Visits = std::map<std::pair<std::int64_t, std::int64_t>, int>;

void visit_plainly(const Shape& shape, const Strides& source, const Strides& target, Visits& visits, std::size_t axis = 0,
                   std::int64_t s = 0, std::int64_t t = 0) {
  if (axis == shape.rank()) {
    ++visits[{s, t}];
    return;
  }
  for (std::int64_t i = 0; i < shape[axis]; ++i)
    visit_plainly(shape, source, target, visits, axis + 1, s + i * source[axis], t + i * target[axis]);
}

TEST(Loop, VisitsEveryPairOfElementsOnceWholeAndInPieces) {
  Random random(seed());
  const auto rounds = scaled(20'000, 500);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::vector<std::int64_t> dims(random.below(5));
    std::vector<std::int64_t> strides[2] = {std::vector<std::int64_t>(dims.size()), std::vector<std::int64_t>(dims.size())};
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      dims[axis] = static_cast<std::int64_t>(1 + random.below(4));
      for (auto& side : strides) side[axis] = static_cast<std::int64_t>(random.below(13)) - 6;
    }
    const Shape shape{std::span<const std::int64_t>(dims)};
    const Strides source{std::span<const std::int64_t>(strides[0])};
    const Strides target{std::span<const std::int64_t>(strides[1])};
    Visits expected;
    visit_plainly(shape, source, target, expected);

    const Loop loop = make_loop(shape, source, target, random.below(2) == 0 ? LoopOrder::source : LoopOrder::target);
    Visits visited;
    for_each_chunk(loop, 1, [&](std::int64_t s, std::int64_t t, std::size_t) { ++visited[{s, t}]; });
    ASSERT_EQ(visited, expected) << "seed " << seed() << ", round " << round;

    const std::size_t most = 1 + random.below(40);
    const Cut by = cut(loop, most);
    ASSERT_LE(by.elements, most);
    Visits in_pieces;
    std::size_t pieces = 0;
    for_each_piece(loop, by, [&](const Loop& piece) {
      std::size_t elements = 0;
      for_each_chunk(piece, 1, [&](std::int64_t s, std::int64_t t, std::size_t) { ++in_pieces[{s, t}], ++elements; });
      EXPECT_LE(elements, by.elements);
      const Loop same = piece_at(loop, by, pieces);
      EXPECT_TRUE(std::ranges::equal(same.axes(), piece.axes()) && same.source_start == piece.source_start &&
                  same.target_start == piece.target_start);
      ++pieces;
    });
    ASSERT_EQ(in_pieces, expected) << "seed " << seed() << ", round " << round;
    ASSERT_EQ(pieces, by.pieces);
  }
  did(std::to_string(rounds) + " random loops, seed " + std::to_string(seed()));
}

Walk walk(const Shape& shape, const Strides& source, const Strides& target) { return walk_of(shape.span(), source.span(), target.span()); }

TEST(Walk, TellsRunsFromTilesFromRowsWithGaps) {
  EXPECT_EQ(walk({4, 5}, {5, 1}, {5, 1}), Walk::whole);
  EXPECT_EQ(walk({4, 5}, {1, 4}, {1, 4}), Walk::whole);
  EXPECT_EQ(walk({4, 5}, {-5, -1}, {-5, -1}), Walk::whole);
  EXPECT_EQ(walk({}, {}, {}), Walk::whole);
  EXPECT_EQ(walk({4, 5}, {8, 1}, {5, 1}), Walk::rows);
  EXPECT_EQ(walk({4, 5}, {0, 1}, {5, 1}), Walk::rows) << "one row, repeated";
  EXPECT_EQ(walk({4, 5}, {1, 4}, {5, 1}), Walk::tiles);
  EXPECT_EQ(walk({2, 3, 4, 5}, {60, 1, 15, 3}, {60, 20, 5, 1}), Walk::tiles) << "NHWC to NCHW";
  EXPECT_EQ(walk({4, 5}, {10, 2}, {5, 1}), Walk::strided);
  EXPECT_EQ(walk({4, 5}, {5, -1}, {5, 1}), Walk::strided) << "reversed";
  EXPECT_EQ(walk({4, 5}, {1, 0}, {5, 1}), Walk::strided) << "an element repeated along the row";
}

}  // namespace
}  // namespace berth::testing

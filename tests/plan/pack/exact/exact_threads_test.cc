// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "plan/pack/exact/exact.h"
#include "plan/pack/expect_packed.h"
#include "plan/pack/lowest.h"
#include "plan/pack/parts.h"
#include "plan/pack/tight_instances.h"
#include "support/scale.h"

// Several threads that search the same part.
namespace berth::testing {

using namespace internal::base;

namespace {

using namespace internal::plan;

const Patience kEndless{std::nullopt, {}};

// Cancelled before the search begins.
Patience cancelled() {
  std::stop_source cancel;
  cancel.request_stop();
  return {std::nullopt, cancel.get_token()};
}

PackAnswer search(const Part& part, std::size_t below, const Patience& patience, std::size_t threads) {
  return pack_exact({part, below, patience, 0, 0, SIZE_MAX, threads}, {});
}

// Which thread finds the optimum varies; the optimum does not.
TEST(ExactThreads, FindTheSameOptimum) {
  for (std::uint64_t round = 0; round < scaled(200, 10); ++round) {
    Random random(seed() + round);
    for (const CutPart& cut : cut_into_parts(tight_instance(random, 6 + random.below(3), 14))) {
      const PackAnswer alone = search(cut.part, SIZE_MAX / 4, kEndless, 1);
      const PackAnswer together = search(cut.part, SIZE_MAX / 4, kEndless, 2 + round % 3);
      ASSERT_EQ(together.end, PackEnd::done);
      expect_packed(cut.part, together.packing);
      ASSERT_EQ(together.packing.peak_bytes, alone.packing.peak_bytes) << round;
      ASSERT_EQ(together.proved_bytes, alone.proved_bytes) << round;
      ASSERT_EQ(search(cut.part, alone.packing.peak_bytes, kEndless, 2).end, PackEnd::above) << round;
    }
  }
}

// A part that is usually too large for a proof.
CutPart hard_part(std::uint64_t round) {
  Random random(seed() + round);
  return std::move(cut_into_parts(tight_instance(random, 64, 200)).front());
}

// The peak of an answer, or a value far above all of them.
std::size_t peak_of(const PackAnswer& answer) { return answer.end == PackEnd::done ? answer.packing.peak_bytes : 1000; }

// Each thread works until its step limit. The peak is lower than that of a single greedy packing, and than
// after a few steps; random variation evens out over some parts.
TEST(ExactThreads, LowerWhatTheyCannotProve) {
  std::size_t lowered = 0;
  std::size_t begun = 0;
  std::size_t once = 0;
  for (std::uint64_t round = 0; round < scaled(4, 1); ++round) {
    const Part part = hard_part(round).part;
    const PackAnswer answer = search(part, SIZE_MAX / 4, kEndless, 2);
    ASSERT_EQ(answer.end, PackEnd::done);
    expect_packed(part, answer.packing);
    ASSERT_GE(answer.packing.peak_bytes, std::max(part.lower_bound_bytes, answer.proved_bytes));
    lowered += peak_of(answer);
    begun += peak_of(search(part, SIZE_MAX / 4, cancelled(), 2));
    once += peak_of(pack_lowest({part, SIZE_MAX / 4, kEndless}, Order::load));
  }
  EXPECT_LT(lowered, begun);
  EXPECT_LT(lowered, once);
}

TEST(ExactThreads, ClaimNothingAboutACapacityThatIsFarTooLarge) {
  Random random(seed());
  for (const CutPart& cut : cut_into_parts(tight_instance(random, 40, 40))) {
    // In units, and beyond their range.
    for (const std::size_t enough : {std::size_t{3} << 30, std::size_t{1} << 40, SIZE_MAX / 2}) {
      const PackAnswer answer = pack_exact({cut.part, SIZE_MAX / 4, kEndless, enough, 0, SIZE_MAX, 1}, {});
      EXPECT_LE(answer.proved_bytes, cut.part.lower_bound_bytes) << enough;
    }
  }
}

// Cancelled before they begin, the threads notice it after a thousand steps: too few to prove anything, or to
// reach as low a peak.
TEST(ExactThreads, StopWhenTheyAreCancelled) {
  std::size_t whole = 0;
  std::size_t stopped = 0;
  for (std::uint64_t round = 0; round < scaled(4, 1); ++round) {
    const Part part = hard_part(round).part;
    const PackAnswer answer = search(part, SIZE_MAX / 4, cancelled(), 2);
    if (answer.end == PackEnd::done)
      expect_packed(part, answer.packing);
    else
      EXPECT_EQ(answer.end, PackEnd::out_of_time);
    EXPECT_EQ(answer.proved_bytes, 0U);
    stopped += peak_of(answer);
    whole += peak_of(search(part, SIZE_MAX / 4, kEndless, 1));
  }
  EXPECT_GT(stopped, whole);
}

}  // namespace
}  // namespace berth::testing

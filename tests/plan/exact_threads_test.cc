// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plan/expect_packed.h"
#include "plan/pack/exact/exact.h"
#include "plan/pack/parts.h"
#include "plan/tight_instances.h"
#include "support/scale.h"

// Several threads that search one part.
namespace berth::testing {
namespace {

using namespace planning;

const Patience kEndless{std::nullopt, {}};

PackAnswer search(const Part& part, std::size_t below, const Patience& patience, std::size_t threads) {
  return pack_exact({part, below, patience, 0, 0, SIZE_MAX, threads}, {});
}

// Which of them finds it is open; what it is, is not.
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

// Too much for a proof: each works until its steps are over, and they tell one another of what they find.
TEST(ExactThreads, LowerWhatTheyCannotProve) {
  for (std::uint64_t round = 0; round < scaled(4, 1); ++round) {
    Random random(seed() + round);
    for (const CutPart& cut : cut_into_parts(tight_instance(random, 40, 40))) {
      const PackAnswer answer = search(cut.part, SIZE_MAX / 4, kEndless, 2);
      ASSERT_EQ(answer.end, PackEnd::done);
      expect_packed(cut.part, answer.packing);
      ASSERT_GE(answer.packing.peak_bytes, cut.part.lower_bound_bytes);
    }
  }
}

TEST(ExactThreads, ClaimNothingAboutACapacityThatIsFarTooLarge) {
  Random random(seed());
  for (const CutPart& cut : cut_into_parts(tight_instance(random, 40, 40))) {
    for (const std::size_t enough : {std::size_t{3} << 30, std::size_t{1} << 40, SIZE_MAX / 2}) {  // in units, and beyond what they count
      const PackAnswer answer = pack_exact({cut.part, SIZE_MAX / 4, kEndless, enough, 0, SIZE_MAX, 1}, {});
      EXPECT_LE(answer.proved_bytes, cut.part.lower_bound_bytes) << enough;
    }
  }
}

TEST(ExactThreads, StopWhenTheyAreCancelled) {
  std::stop_source cancel;
  cancel.request_stop();
  const Patience over(std::nullopt, cancel.get_token());
  Random random(seed());
  const std::vector<CutPart> parts = cut_into_parts(tight_instance(random, 64, 200));
  const PackAnswer answer = search(parts[0].part, SIZE_MAX / 4, over, 2);
  if (answer.end == PackEnd::done)
    expect_packed(parts[0].part, answer.packing);
  else
    EXPECT_EQ(answer.end, PackEnd::out_of_time);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/exact.h"

#include <gtest/gtest.h>

#include <array>

#include "plan/pack/expect_packed.h"
#include "plan/pack/parts.h"
#include "plan/pack/tight_instances.h"
#include "support/scale.h"

// The exact search against brute force, on instances whose optimum is above the lower bound half of the time.
namespace berth::testing {

using namespace internal::base;

namespace {

using namespace internal::plan;

const Patience kEndless{std::nullopt, {}};

struct RuleSwitch {
  const char* name;
  bool pack::exact::Rules::*rule;
};
constexpr RuleSwitch kRules[] = {
    {"split", &pack::exact::Rules::split},         {"rerank", &pack::exact::Rules::rerank}, {"remember", &pack::exact::Rules::remember},
    {"dominance", &pack::exact::Rules::dominance}, {"edge", &pack::exact::Rules::edge},     {"support", &pack::exact::Rules::support},
    {"jump", &pack::exact::Rules::jump},           {"fewest", &pack::exact::Rules::fewest},
};

std::size_t optimum_by_force(const Part& part) {
  std::size_t height = part.lower_bound_bytes;
  while (!fits_by_force(part.buffers, height)) ++height;
  return height;
}

// The optimum is found, and proved if it is above the lower bound.
void expect_optimum(const Part& part, std::size_t optimum, const pack::exact::Rules& rules) {
  const PackAnswer answer = pack_exact({part, SIZE_MAX / 4, kEndless}, rules);
  ASSERT_EQ(answer.end, PackEnd::done);
  expect_packed(part, answer.packing);
  ASSERT_EQ(answer.packing.peak_bytes, optimum);
  ASSERT_EQ(answer.proved_bytes, optimum > part.lower_bound_bytes ? optimum : 0);
  const PackAnswer lower = pack_exact({part, optimum, kEndless}, rules);
  ASSERT_EQ(lower.end, PackEnd::above);
  ASSERT_LE(lower.proved_bytes, optimum);
}

// Changes an instance so that it has the special cases of the search.
void add_alignment(Random& random, std::vector<PackBuffer>& buffers) {
  for (PackBuffer& one : buffers)
    if (one.bytes % 2 == 0 && random.one_in(2)) one.alignment = 2;
}
void add_fixed(Random& random, std::vector<PackBuffer>& buffers) {
  PackBuffer& one = buffers[random.below(buffers.size())];
  one.fixed = random.below(8);
}

template <class Change>
void compare_with_force(std::uint64_t seed_offset, std::uint64_t wanted, Change change) {
  Random random(seed() + seed_offset);
  std::uint64_t above = 0;
  for (std::uint64_t tries = 0; above < wanted && tries < 100 * wanted; ++tries) {
    std::vector<PackBuffer> buffers = tight_instance(random, 5 + random.below(3), 6 + static_cast<std::uint32_t>(random.below(8)));
    change(random, buffers);
    for (const CutPart& cut : cut_into_parts(buffers)) {
      const std::size_t optimum = optimum_by_force(cut.part);
      if (optimum > cut.part.lower_bound_bytes) ++above;
      SCOPED_TRACE(tries);
      expect_optimum(cut.part, optimum, {});
      for (const RuleSwitch& one : kRules) {
        SCOPED_TRACE(one.name);
        pack::exact::Rules rules;
        rules.*one.rule = false;
        expect_optimum(cut.part, optimum, rules);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GE(above, wanted) << "the generator must aim at instances above their bound";
}

TEST(Exact, AgreesWithBruteForceAboveTheBoundWithEachRuleOnAndOff) {
  compare_with_force(0, scaled(1000, 40), [](Random&, std::vector<PackBuffer>&) {});
}

TEST(Exact, AgreesWithBruteForceOnAlignedBuffers) { compare_with_force(1, scaled(200, 10), add_alignment); }

TEST(Exact, AgreesWithBruteForceAroundFixedBuffers) { compare_with_force(2, scaled(200, 10), add_fixed); }

// Two buffers with equal lifetimes must not be merged: merged they need more. The smallest known example.
TEST(Exact, DoesNotMergeEqualLives) {
  std::vector<PackBuffer> buffers;
  for (const auto& [begin, end, bytes] : std::vector<std::array<std::uint32_t, 3>>{
           {0, 4, 2}, {0, 4, 2}, {0, 3, 3}, {3, 6, 2}, {3, 7, 1}, {4, 7, 3}, {4, 6, 1}, {6, 9, 3}, {7, 9, 1}, {7, 9, 3}})
    buffers.push_back({.bytes = bytes, .begin = begin, .end = end});
  const std::vector<CutPart> parts = cut_into_parts(buffers);
  ASSERT_EQ(parts.size(), 1U);
  expect_optimum(parts[0].part, 7, {});
}

TEST(Exact, StopsAtWhatIsEnough) {
  Random random(3);
  std::vector<PackBuffer> buffers = tight_instance(random, 64, 30);
  const std::vector<CutPart> parts = cut_into_parts(buffers);
  const PackAnswer answer = pack_exact({parts[0].part, 200, kEndless, 199}, {});
  ASSERT_EQ(answer.end, PackEnd::done);
  EXPECT_LT(answer.packing.peak_bytes, 200U);
}

TEST(Exact, EqualSeedsGiveEqualPackings) {
  Random random(4);
  const std::vector<CutPart> parts = cut_into_parts(tight_instance(random, 40, 30));
  const PackTask task{parts[0].part, SIZE_MAX / 4, kEndless, 0, 11};
  const PackAnswer one = pack_exact(task, {});
  EXPECT_EQ(one.packing.offsets, pack_exact(task, {}).packing.offsets);
  expect_packed(parts[0].part, one.packing);
}

// The representation of an instance must not matter, even where the search gives up before its end.
TEST(Exact, RelabelledReversedScaledAndShiftedCopiesHaveTheSamePeak) {
  for (std::uint64_t round = 0; round < scaled(20, 3); ++round) {
    Random random(seed() + round);
    const std::vector<PackBuffer> plain = tight_instance(random, 30, 60);
    const auto peak_of = [](const std::vector<PackBuffer>& buffers) {
      return pack_exact({cut_into_parts(buffers)[0].part, SIZE_MAX / 4, kEndless}, {}).packing.peak_bytes;
    };
    const std::size_t peak = peak_of(plain);
    std::vector<PackBuffer> other = plain;
    for (std::size_t i = other.size(); i > 1; --i) std::swap(other[i - 1], other[random.below(i)]);
    EXPECT_EQ(peak_of(other), peak) << "relabelled";
    for (PackBuffer& one : other) {
      const std::uint32_t begin = one.begin;
      one.begin = 1000 - one.end;
      one.end = 1000 - begin;
    }
    EXPECT_EQ(peak_of(other), peak) << "reversed";
    for (PackBuffer& one : other) {
      one.bytes *= 12;
      one.begin = one.begin * 3 + 17;
      one.end = one.end * 3 + 17;
    }
    EXPECT_EQ(peak_of(other), 12 * peak) << "scaled and shifted";
  }
}

// So no packer can distinguish a copy in other units from the plain one.
TEST(Exact, AScaledCopyIsCutAlikeAndPackedInTheSameDirection) {
  Random random(seed());
  for (std::uint64_t round = 0; round < scaled(200, 20); ++round) {
    std::vector<PackBuffer> buffers = tight_instance(random, 30, 60);
    add_fixed(random, buffers);
    const std::vector<CutPart> plain = cut_into_parts(buffers);
    for (PackBuffer& one : buffers) {
      one.bytes *= 12;
      if (one.fixed) one.fixed = *one.fixed * 12;
    }
    const std::vector<CutPart> other = cut_into_parts(buffers);
    ASSERT_EQ(plain.size(), other.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(plain[i].part.mirrored, other[i].part.mirrored) << "round " << round;
      EXPECT_EQ(plain[i].indices, other[i].indices) << "round " << round;
    }
  }
}

TEST(Exact, LeavesTooManyBuffersAlone) {
  std::vector<PackBuffer> buffers(600, {.bytes = 8, .begin = 0, .end = 1});
  EXPECT_EQ(pack_exact({cut_into_parts(buffers)[0].part, SIZE_MAX / 4, kEndless}, {}).end, PackEnd::too_many);
}

}  // namespace
}  // namespace berth::testing

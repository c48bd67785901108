// SPDX-License-Identifier: Apache-2.0
#include "memory/usage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

const Tag kTag("usage");

// With room for a tag.
struct Counted : Usage {
  explicit Counted(Tag tag = kTag) { EXPECT_TRUE(reserve(tag)); }
};

TEST(Usage, BeginsWithNothing) {
  const Usage usage;
  EXPECT_EQ(usage.stats(), Stats());
  EXPECT_EQ(usage.audit("fresh"), "");
}

TEST(Usage, CachesWhatIsCommittedAndNotInUse) {
  Counted usage;
  usage.count_commit(4096);
  usage.count_allocation(kTag, 1000);
  usage.count_allocation(kTag, 500);
  usage.count_free(kTag, 1000);
  usage.count_refusal();
  EXPECT_EQ(usage.cached_bytes(), 3596U);
  EXPECT_EQ(usage.stats(), (Stats{.in_use_bytes = 500,
                                  .cached_bytes = 3596,
                                  .committed_bytes = 4096,
                                  .peak_in_use_bytes = 1500,
                                  .peak_committed_bytes = 4096,
                                  .live_blocks = 1,
                                  .allocations = 2,
                                  .frees = 1,
                                  .failures = 1,
                                  .commits = 1,
                                  .decommits = 0}));
}

TEST(Usage, GrowthInPlaceIsAFreeAndAnAllocation) {
  Counted usage;
  usage.count_commit(4096);
  usage.count_allocation(kTag, 1000);
  usage.count_growth(kTag, 1000, 3000);
  const Stats now = usage.stats();
  EXPECT_EQ(now.allocations, 2U);
  EXPECT_EQ(now.frees, 1U);
  EXPECT_EQ(now.live_blocks, 1U);
  EXPECT_EQ(now.in_use_bytes, 3000U);
  EXPECT_EQ(now.peak_in_use_bytes, 3000U) << "old and new are never in use together";
}

TEST(Usage, ADecommitIsCountedWhenTheDeviceHasDoneIt) {
  Counted usage;
  usage.count_commit(8192);
  const Stats before = usage.stats();
  usage.begin_decommit(4096);
  EXPECT_EQ(usage.committed_bytes(), 4096U);
  EXPECT_EQ(usage.stats().decommits, 0U);
  usage.end_decommit(4096, false);
  EXPECT_EQ(usage.stats(), before);
  usage.begin_decommit(4096);
  usage.end_decommit(4096, true);
  EXPECT_EQ(usage.stats().decommits, 1U);
  EXPECT_EQ(usage.committed_bytes(), 4096U);
}

TEST(Usage, AnOwnerThatNeverCommitsCountsBlocksOnly) {
  Counted usage;
  usage.count_allocation(kTag, 1000);
  EXPECT_EQ(usage.stats().cached_bytes, 0U);
  EXPECT_EQ(usage.stats().in_use_bytes, 1000U);
  EXPECT_EQ(usage.audit("check"), "");
}

TEST(Usage, TheAuditNamesTheOwnerAndWhatDoesNotAddUp) {
  Counted overdrawn;
  overdrawn.count_commit(100);
  overdrawn.count_allocation(kTag, 101);
  EXPECT_EQ(overdrawn.audit("arena"), "arena: more is in use than is committed");

  Counted freed_twice;
  freed_twice.count_allocation(kTag, 100);
  freed_twice.count_free(kTag, 100);
  freed_twice.count_free(kTag, 100);
  EXPECT_EQ(freed_twice.audit("direct"), "direct: a peak is too low");

  Counted returned_twice;
  returned_twice.count_commit(100);
  returned_twice.count_decommit(100);
  returned_twice.count_decommit(100);
  EXPECT_EQ(returned_twice.audit("rounded"), "rounded: a peak is too low");
}

// Tags of far numbers too, of which each has its own chunk.
TEST(Usage, KnowsWhatEachTagHolds) {
  Random random(seed());
  std::vector<Tag> tags;
  for (int i = 0; i < 300; ++i) tags.emplace_back("held " + std::to_string(i));
  struct Held {
    Tag tag;
    std::size_t bytes;
  };
  Usage usage;
  std::vector<Held> blocks;
  std::map<std::uint16_t, std::pair<std::size_t, std::uint64_t>> model;
  for (std::uint64_t i = 0; i < scaled(100'000); ++i) {
    const std::size_t bytes = 1 + random.below(10'000);
    if (blocks.empty() || random.below(5) < 3) {
      const Tag tag = tags[random.below(tags.size())];
      ASSERT_TRUE(usage.reserve(tag));
      usage.count_allocation(tag, bytes);
      blocks.push_back({tag, bytes});
      model[tag.id()].first += bytes;
      ++model[tag.id()].second;
    } else if (Held& some = blocks[random.below(blocks.size())]; random.below(4) == 0) {
      usage.count_growth(some.tag, some.bytes, some.bytes + bytes);
      model[some.tag.id()].first += bytes;
      some.bytes += bytes;
    } else {
      usage.count_free(some.tag, some.bytes);
      model[some.tag.id()].first -= some.bytes;
      if (--model[some.tag.id()].second == 0) model.erase(some.tag.id());
      some = blocks.back();
      blocks.pop_back();
    }
  }
  ASSERT_EQ(usage.audit("held"), "");
  const std::vector<Holder> holders = most_first(usage.holders());
  EXPECT_EQ(holders.size(), model.size());
  for (const Holder& holder : holders) EXPECT_EQ(model[holder.tag.id()], std::pair(holder.bytes, holder.blocks)) << holder.tag.word();
  EXPECT_TRUE(std::ranges::is_sorted(holders, std::greater(), &Holder::bytes));
}

TEST(Usage, MatchesAListOfBlocksOverRandomEvents) {
  Random random(seed());
  Counted usage;
  std::map<std::uint64_t, std::size_t> blocks;
  Stats model;
  const std::uint64_t steps = scaled(100'000);
  for (std::uint64_t i = 0; i < steps; ++i) {
    const std::size_t bytes = 1 + random.below(10'000);
    const auto some = blocks.empty() ? blocks.end() : std::next(blocks.begin(), static_cast<std::ptrdiff_t>(random.below(blocks.size())));
    switch (random.below(3)) {
      case 0:
        usage.count_commit(bytes);
        usage.count_allocation(kTag, bytes);
        blocks[i] = bytes;
        ++model.allocations;
        ++model.commits;
        break;
      case 1:
        if (some == blocks.end()) continue;
        usage.count_free(kTag, some->second);
        usage.count_decommit(some->second);
        blocks.erase(some);
        ++model.frees;
        ++model.decommits;
        break;
      default:
        if (some == blocks.end()) continue;
        usage.count_commit(bytes);
        usage.count_growth(kTag, some->second, some->second + bytes);
        some->second += bytes;
        ++model.allocations;
        ++model.frees;
        ++model.commits;
    }
    model.in_use_bytes = 0;
    for (const auto& [serial, size] : blocks) model.in_use_bytes += size;
    model.committed_bytes = model.in_use_bytes;
    model.live_blocks = blocks.size();
    model.peak_in_use_bytes = model.peak_committed_bytes = std::max(model.peak_in_use_bytes, model.in_use_bytes);
    ASSERT_EQ(usage.stats(), model) << "step " << i;
    ASSERT_EQ(usage.audit("model"), "") << "step " << i;
    if (blocks.size() > 60) {  // so that each step stays cheap
      for (const auto& [serial, size] : blocks) {
        usage.count_free(kTag, size);
        usage.count_decommit(size);
        ++model.frees;
        ++model.decommits;
      }
      blocks.clear();
    }
  }
  did(std::to_string(steps) + " events");
}

}  // namespace
}  // namespace berth::testing

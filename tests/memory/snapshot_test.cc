// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/churn.h"
#include "support/everything.h"
#include "support/scale.h"

// Snapshots of allocators: that they are complete, and consistent while other threads allocate.
namespace berth::testing {

using namespace internal;
namespace {

std::uint64_t address(const Block& block) { return reinterpret_cast<std::uintptr_t>(block.data); }

std::size_t any_size(Random& random) {
  const std::uint64_t kind = random.below(100);
  return 1 + random.below(kind < 80 ? 4096 : kind < 97 ? 100'000 : 1_MiB);
}

// The live blocks of a snapshot, by address.
std::map<std::uint64_t, SnapshotBlock> by_address(const Snapshot& snapshot) {
  std::map<std::uint64_t, SnapshotBlock> blocks;
  for (const SnapshotBlock& block : snapshot.blocks) {
    if (block.state == BlockState::live) blocks[snapshot.base + block.offset] = block;
  }
  return blocks;
}

void expect_equal(const Snapshot& snapshot, const std::vector<Block>& live, const Allocator& allocator) {
  EXPECT_EQ(snapshot.audit(), "");
  const auto found = by_address(snapshot);
  ASSERT_EQ(found.size(), live.size());
  for (const Block& block : live) {
    const auto at = found.find(address(block));
    ASSERT_NE(at, found.end());
    EXPECT_EQ(at->second.requested, block.bytes);
    EXPECT_GE(at->second.bytes, block.bytes);
    EXPECT_EQ(snapshot.tags[at->second.tag], block.tag.word());
    EXPECT_EQ(at->second.stream_id, block.stream_id);
  }
  const Stats stats = allocator.stats();
  EXPECT_EQ(snapshot.stats, stats);
  EXPECT_EQ(snapshot.figures.requested_bytes, stats.in_use_bytes);
  EXPECT_EQ(snapshot.figures.live_blocks, stats.live_blocks);
  EXPECT_EQ(snapshot.figures.committed_bytes, stats.committed_bytes);
}

class EveryStrategy : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Snapshot, EveryStrategy, ::testing::Values("pool", "rounded", "exact", "direct", "arena:512MiB"),
                         [](const auto& given) { return std::string(given.param).substr(0, std::string(given.param).find(':')); });

TEST_P(EveryStrategy, ListsExactlyWhatLives) {
  const std::shared_ptr<Allocator> memory = make_allocator(GetParam(), "cpu");
  constexpr const char* kTags[] = {"", "weights", "kv", "activations"};
  Random random(seed());
  std::vector<Block> live;
  const std::uint64_t steps = scaled(20'000, 300);
  for (std::uint64_t i = 0; i < steps; ++i) {
    if (live.empty() || random.below(5) < 3) {
      const TagScope scope(kTags[random.below(4)]);
      if (const auto block = memory->try_allocate({.bytes = any_size(random)})) live.push_back(*block);
    } else {
      std::swap(live[random.below(live.size())], live.back());
      memory->deallocate(live.back());
      live.pop_back();
    }
    if (i % std::max<std::uint64_t>(steps / 8, 1) == 0) expect_equal(memory->snapshot(), live, *memory);
  }
  expect_equal(memory->snapshot(), live, *memory);
  for (const Block& block : live) memory->deallocate(block);
  expect_equal(memory->snapshot(), {}, *memory);
}

TEST(Snapshot, OfAPoolThatWasNeverUsedIsEmpty) {
  const Snapshot snapshot = pool("cpu")->snapshot();
  EXPECT_EQ(snapshot.audit(), "");
  EXPECT_TRUE(snapshot.blocks.empty() && snapshot.free.empty() && snapshot.memory.empty());
  EXPECT_EQ(snapshot.device, "cpu:0");
  EXPECT_EQ(snapshot.allocator, "pool");
}

TEST(Snapshot, TellsBlocksThatAnotherThreadHasFreedAsFree) {
  const auto memory = pool("cpu");
  std::vector<Block> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(memory->allocate({.bytes = 100}));
  std::thread([&] {
    for (int i = 0; i < 30; ++i) memory->deallocate(blocks[static_cast<std::size_t>(i)]);
  }).join();
  expect_equal(memory->snapshot(), {blocks.begin() + 30, blocks.end()}, *memory);
  for (int i = 30; i < 40; ++i) memory->deallocate(blocks[static_cast<std::size_t>(i)]);
}

TEST(Snapshot, TellsALargeBlockThatAThreadKeepsForItsNextRequestAsFree) {
  const auto memory = pool("cpu");
  for (int i = 0; i < 40; ++i) {
    const Block block = memory->allocate({.bytes = 1_MiB});
    expect_equal(memory->snapshot(), {block}, *memory);
    memory->deallocate(block);
    expect_equal(memory->snapshot(), {}, *memory);
    EXPECT_EQ(memory->snapshot().figures.waiting_blocks, 0U);
  }
}

TEST(Snapshot, TellsWhatWaitsForAStream) {
  const Device device = make_sim({.background = false});
  const Stream stream = make_stream(device);
  stream.enqueue([] {});
  const Stream other = make_stream(device);
  other.enqueue([] {});
  const auto memory = pool(device);
  const Block large = memory->allocate({.bytes = 1_MiB, .stream = stream});
  const Block kept = memory->allocate({.bytes = 2_MiB, .stream = stream});
  memory->used_on(kept, other);
  memory->deallocate(large);
  memory->deallocate(kept);
  const Snapshot snapshot = memory->snapshot();
  EXPECT_EQ(snapshot.audit(), "");
  EXPECT_EQ(snapshot.figures.waiting_blocks, 1U);
  EXPECT_EQ(snapshot.figures.live_blocks, 0U);
  ASSERT_EQ(snapshot.streams.size(), 1U);
  EXPECT_EQ(snapshot.streams[0].stream_id, stream.id());
  EXPECT_GE(snapshot.streams[0].bytes, 3_MiB);
}

// Snapshots of the first of them, while four threads use them all.
void snapshot_while_in_use(const std::vector<std::shared_ptr<Allocator>>& all, std::size_t most_blocks,
                           const std::function<std::size_t(Random&)>& bytes) {
  std::atomic<std::uint64_t> taken = 0;
  std::string wrong;
  const auto holds = [&] {
    const Snapshot snapshot = all.front()->snapshot();
    ++taken;
    const std::string found = snapshot.audit();
    if (!found.empty()) wrong = found;
    return found.empty() && snapshot.figures.committed_bytes <= snapshot.range_bytes;
  };
  const Churned churned = churn(all, {.steps = scaled(300'000, 3000), .most_blocks = most_blocks, .bytes = bytes, .holds = holds});
  EXPECT_TRUE(churned.held) << wrong;
  for (const auto& memory : all) EXPECT_EQ(memory->audit(), "");
  did("took " + std::to_string(taken) + " snapshots while four threads allocated and freed");
}

TEST(Snapshot, OfAPoolHangsTogetherWhileFourThreadsUseIt) { snapshot_while_in_use({pool("cpu")}, 2000, any_size); }

// A tenant moves pages away from its parent, at the device, without the parent's lock.
TEST(Snapshot, OfAPoolHangsTogetherWhileATenantBorrowsItsPages) {
  const auto parent = pool("cpu");
  const auto tenant = private_pool(parent, {.fixed_pages = false});
  snapshot_while_in_use({parent, tenant}, 100, [](Random& random) { return 1 + random.below(8_MiB); });
}

TEST(Snapshot, PassesThroughAdaptors) {
  const auto memory = limit(track(pool("cpu")), 1_GiB);
  const Block block = memory->allocate({.bytes = 1000, .tag = "kv"});
  const Snapshot snapshot = memory->snapshot();
  EXPECT_EQ(snapshot.allocator, "limit(track(pool))");
  EXPECT_EQ(by_address(snapshot).count(address(block)), 1U);
  memory->deallocate(block);
}

// Each fault on its own is found.
TEST(Snapshot, AuditFindsWhatIsWrong) {
  const auto memory = pool("cpu");
  std::vector<Block> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(memory->allocate({.bytes = 300'000, .tag = "kv"}));
  memory->deallocate(blocks[4]);
  const Snapshot good = memory->snapshot();
  ASSERT_EQ(good.audit(), "");
  ASSERT_GE(good.free.size(), 1U);
  const std::vector<std::function<void(Snapshot&)>> faults = {
      [](Snapshot& s) { s.blocks[3].bytes += 4096; },
      [](Snapshot& s) { s.blocks[3].bytes = 0; },
      [](Snapshot& s) { s.blocks[3].offset = UINT64_MAX - 10; },
      [](Snapshot& s) { s.blocks[3].requested = s.blocks[3].bytes + 1; },
      [](Snapshot& s) { s.blocks[3].tag = 2; },
      [](Snapshot& s) { s.blocks[3].site = 1; },
      [](Snapshot& s) { s.blocks.erase(s.blocks.begin() + 2); },
      [](Snapshot& s) { std::swap(s.blocks[1], s.blocks[2]); },
      [](Snapshot& s) { s.free.clear(); },
      [](Snapshot& s) { s.memory.front().bytes -= 4096; },
      [](Snapshot& s) { s.memory.clear(); },
      [](Snapshot& s) { s.range_bytes = s.blocks.back().offset; },
      [](Snapshot& s) { ++s.figures.live_blocks; },
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Snapshot bad = good;
    faults[i](bad);
    EXPECT_NE(bad.audit(), "") << "fault " << i;
  }
  blocks.erase(blocks.begin() + 4);
  for (const Block& block : blocks) memory->deallocate(block);
}

}  // namespace
}  // namespace berth::testing

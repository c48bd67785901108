// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

#include "base/random.h"
#include "support/churn.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/hooked_backend.h"
#include "support/scale.h"

// Private pools: blocks of their own, on pages that they have in common with their parent.
namespace berth::testing {

using namespace internal;
namespace {

class PrivatePool : public ::testing::Test {
 protected:
  std::size_t taken() const { return sim_control(device_).committed_bytes(); }

  // The figures of both add up to those of the device, and both are consistent.
  void expect_sound(const Allocator& parent, const Allocator& child) const {
    EXPECT_EQ(parent.stats().committed_bytes + child.stats().committed_bytes, taken());
    EXPECT_EQ(process_memory(device_).committed_bytes, taken());
    EXPECT_EQ(parent.audit(), "");
    EXPECT_EQ(child.audit(), "");
  }

  bool is_committed(const void* address) const {
    std::byte byte{};
    const Transfer transfer{.target = &byte, .target_device = {}, .source = address, .source_device = device_, .bytes = 1};
    return backend(device_).copy(transfer, {}).ok();
  }

  Device device_ = make_sim({.capacity_bytes = 64_MiB, .background = false});
};

TEST_F(PrivatePool, TakesFreePagesOfItsParentBeforeNewOnes) {
  const auto parent = pool(device_);
  parent->deallocate(parent->allocate({.bytes = 32_MiB}));
  const Block small = parent->allocate({.bytes = 2_MiB});
  auto child = private_pool(parent);
  const Block block = child->allocate({.bytes = 16_MiB});
  EXPECT_EQ(taken(), 32_MiB) << "the device was asked for nothing";
  EXPECT_EQ(child->stats().committed_bytes, 16_MiB);
  EXPECT_EQ(parent->stats().committed_bytes, 16_MiB);
  EXPECT_EQ(child->stats().commits, 0U);
  expect_sound(*parent, *child);
  fill_bytes(block.data, device_, 7, block.bytes);
  const Block more = child->allocate({.bytes = 20_MiB});
  EXPECT_EQ(taken(), 38_MiB) << "what the parent had, and the rest anew";
  expect_sound(*parent, *child);
  child->deallocate(block);
  child->deallocate(more);
  expect_sound(*parent, *child);
  EXPECT_EQ(child->stats().committed_bytes, 36_MiB) << "what it frees stays its own";
  child = nullptr;
  EXPECT_EQ(parent->stats().committed_bytes, 38_MiB) << "and goes to its parent in the end";
  EXPECT_EQ(taken(), 38_MiB);
  EXPECT_EQ(parent->audit(), "");
  const std::uint64_t commits = parent->stats().commits;
  parent->deallocate(parent->allocate({.bytes = 30_MiB}));
  EXPECT_EQ(parent->stats().commits, commits);
  parent->deallocate(small);
  parent->trim(0);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(PrivatePool, WhatIsTrimmedGoesToTheParentAndWhatIsFreedNowToTheDevice) {
  const auto parent = pool(device_);
  const Block kept = parent->allocate({.bytes = 1_MiB});
  const auto child = private_pool(parent);
  const Block first = child->allocate({.bytes = 4_MiB});
  const Block second = child->allocate({.bytes = 4_MiB});
  child->deallocate(first);
  child->trim(0);
  EXPECT_EQ(child->stats().committed_bytes, 4_MiB);
  EXPECT_EQ(parent->stats().committed_bytes, 5_MiB);
  expect_sound(*parent, *child);
  child->deallocate_now(second);
  EXPECT_EQ(child->stats().committed_bytes, 0U);
  EXPECT_EQ(parent->stats().committed_bytes, 5_MiB);
  expect_sound(*parent, *child);
  parent->deallocate(kept);
}

TEST_F(PrivatePool, ItsParentsLimitCoversBoth) {
  const auto parent = pool(device_, {.limit_bytes = 8_MiB});
  const auto child = private_pool(parent);
  const Block block = child->allocate({.bytes = 5_MiB, .tag = "graph"});
  EXPECT_FALSE(parent->try_allocate({.bytes = 4_MiB}));
  const Block rest = parent->allocate({.bytes = 3_MiB});
  try {
    (void)child->allocate({.bytes = 1_MiB});
    FAIL() << "was served";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().refused_by, "its parent's limit of 8 MiB");
    EXPECT_EQ(error.report().allocator, "private_pool");
    EXPECT_EQ(error.report().limit_bytes, 8_MiB);
    EXPECT_EQ(error.report().top_holders.at(0).tag, Tag("graph"));
  }
  expect_sound(*parent, *child);
  parent->deallocate(rest);
  const auto now = child->try_allocate({.bytes = 3_MiB});
  EXPECT_TRUE(now) << "the parent's free pages are the child's to take";
  if (now) child->deallocate(*now);
  child->deallocate(block);
  expect_sound(*parent, *child);
}

TEST_F(PrivatePool, SmallBlocksInTheParentsCachesDoNotStandInTheWay) {
  const auto parent = pool(device_, {.limit_bytes = 8_MiB});
  std::vector<Block> small;
  while (const auto block = parent->try_allocate({.bytes = 3000})) small.push_back(*block);
  for (const Block& block : small) parent->deallocate(block);
  const auto child = private_pool(parent);
  const auto most = child->try_allocate({.bytes = 8_MiB});
  EXPECT_TRUE(most);
  if (most) child->deallocate(*most);
  expect_sound(*parent, *child);
}

TEST_F(PrivatePool, KeepsToItsOwnLimitToo) {
  const auto parent = pool(device_);
  parent->deallocate(parent->allocate({.bytes = 16_MiB}));
  const auto child = private_pool(parent, {.limit_bytes = 4_MiB});
  EXPECT_FALSE(child->try_allocate({.bytes = 4_MiB + 1})) << "though its parent has enough";
  EXPECT_EQ(parent->stats().committed_bytes, taken());
  const auto most = child->try_allocate({.bytes = 4_MiB});
  EXPECT_TRUE(most);
  if (most) child->deallocate(*most);
  EXPECT_EQ(taken(), 16_MiB);
  expect_sound(*parent, *child);
}

TEST_F(PrivatePool, FixedPagesStayUnderTheirAddresses) {
  const auto parent = pool(device_, {.limit_bytes = 16_MiB});
  const auto child = private_pool(parent);
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(child->allocate({.bytes = 1_MiB}));
  for (std::size_t i = 0; i < 8; i += 2) child->deallocate(blocks[i]);
  const Block larger = child->allocate({.bytes = 4_MiB});  // fits in no hole
  EXPECT_FALSE(parent->try_allocate({.bytes = 8_MiB})) << "its cache is not for others";
  set_process_limit(device_, 1_MiB);  // not even when the process is short of memory
  set_process_limit(device_, SIZE_MAX);
  for (std::size_t i = 0; i < 8; i += 2) EXPECT_TRUE(is_committed(blocks[i].data)) << "a graph may still write there";
  expect_sound(*parent, *child);
  child->deallocate(larger);
  for (std::size_t i = 1; i < 8; i += 2) child->deallocate(blocks[i]);
}

TEST_F(PrivatePool, ATenantsPagesGoToWhoIsShort) {
  const auto parent = pool(device_, {.limit_bytes = 16_MiB});
  const auto tenant = private_pool(parent, {.fixed_pages = false});
  const auto other = private_pool(parent, {.fixed_pages = false});
  tenant->deallocate(tenant->allocate({.bytes = 12_MiB}));
  const auto of_parent = parent->try_allocate({.bytes = 14_MiB});
  EXPECT_TRUE(of_parent);
  if (of_parent) parent->deallocate(*of_parent);
  const auto of_tenant = tenant->try_allocate({.bytes = 16_MiB});
  EXPECT_TRUE(of_tenant);
  if (of_tenant) tenant->deallocate(*of_tenant);
  const auto of_other = other->try_allocate({.bytes = 16_MiB});
  EXPECT_TRUE(of_other) << "from its sibling";
  if (of_other) other->deallocate(*of_other);
  EXPECT_LE(taken(), 16_MiB);
  EXPECT_EQ(parent->audit() + tenant->audit() + other->audit(), "");
}

TEST_F(PrivatePool, LeavesAHeldParentAlone) {
  const auto parent = pool(device_);
  parent->deallocate(parent->allocate({.bytes = 8_MiB}));
  const auto child = private_pool(parent);
  const Hold quiet = parent->hold();
  const Block block = child->allocate({.bytes = 4_MiB});
  EXPECT_EQ(parent->stats().committed_bytes, 8_MiB);
  child->deallocate(block);
  child->trim(0);
  EXPECT_EQ(parent->stats().committed_bytes, 8_MiB);
  expect_sound(*parent, *child);
}

TEST_F(PrivatePool, RefusesWhatMakesNoSense) {
  const auto parent = pool(device_);
  const auto child = private_pool(parent);
  EXPECT_ERROR((void)private_pool(nullptr), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR((void)private_pool(limit(parent, 1_MiB)), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR((void)private_pool(direct(device_)), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR((void)private_pool(child), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR((void)private_pool(parent, {.decay = std::chrono::seconds(1)}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_NO_THROW((void)private_pool(parent, {.fixed_pages = false, .decay = std::chrono::seconds(1)}));
  EXPECT_EQ(child->name(), "private_pool");
  EXPECT_NE(child->settings().find("fixed pages"), std::string::npos) << child->settings();
}

TEST_F(PrivatePool, OutlivesTheHandleOfItsParent) {
  auto parent = pool(device_);
  parent->deallocate(parent->allocate({.bytes = 4_MiB}));
  auto child = private_pool(parent);
  parent = nullptr;
  const Block block = child->allocate({.bytes = 8_MiB});
  child->deallocate(block);
  child = nullptr;
  EXPECT_EQ(taken(), 0U) << "the last one takes everything along";
  EXPECT_EQ(process_memory(device_).committed_bytes, 0U);
}

// A device that cannot move pages, like a kernel that refuses mremap: one pool decommits what the other commits
// anew.
TEST_F(PrivatePool, WorksWherePagesDoNotMove) {
  (void)hooked_backend();
  const auto parent = pool("hooked:0", {.limit_bytes = 8_MiB});
  parent->deallocate(parent->allocate({.bytes = 6_MiB}));
  auto child = private_pool(parent);
  const Block block = child->allocate({.bytes = 5_MiB});
  static_cast<char*>(block.data)[block.bytes - 1] = 1;
  EXPECT_EQ(parent->stats().committed_bytes + child->stats().committed_bytes, 6_MiB);
  EXPECT_EQ(parent->audit() + child->audit(), "");
  child->deallocate(block);
  child = nullptr;
  EXPECT_EQ(parent->stats().committed_bytes, 1_MiB);
  parent->trim(0);
  EXPECT_EQ(process_memory("hooked:0").committed_bytes, 0U);
}

// Every commit and move of a scenario fails in turn.
TEST_F(PrivatePool, TheNthFailureChangesNothing) {
  for (std::uint64_t run = 0; run < 48; ++run) {
    const std::uint64_t nth = 1 + run / 4;
    const auto parent = pool(device_);
    parent->deallocate(parent->allocate({.bytes = 4_MiB}));
    auto child = private_pool(parent);
    const Block before = child->allocate({.bytes = 1_MiB});
    if (run % 4 == 0) sim_control(device_).fail_after(SimOperation::commit, nth);
    if (run % 4 != 0) sim_control(device_).fail_after(SimOperation::move, nth);
    // The decommit that stands in for a move fails too.
    if (run % 4 == 2) sim_control(device_).fail_after(SimOperation::decommit, 1);
    if (run % 4 == 3) sim_control(device_).fail_after(SimOperation::commit, nth);
    std::vector<Block> blocks;
    for (const std::size_t bytes : {2_MiB, 6_MiB, 100_KiB, 1_MiB}) {
      if (const auto block = child->try_allocate({.bytes = bytes})) blocks.push_back(*block);
      expect_sound(*parent, *child);
    }
    for (const Block& block : blocks) child->deallocate(block);
    child->deallocate(before);
    child->trim(0);
    expect_sound(*parent, *child);
    sim_control(device_).clear_faults();
  }
}

TEST_F(PrivatePool, ThreadsOfAllPoolsKeepToTheLimit) {
  constexpr std::size_t kLimit = 12_MiB;
  const auto parent = pool(device_, {.limit_bytes = kLimit});
  {
    const std::vector<std::shared_ptr<Allocator>> all = {parent, private_pool(parent), private_pool(parent, {.fixed_pages = false})};
    const auto meanwhile = [&](Random& random) {
      if (random.one_in(200)) all[random.below(all.size())]->trim(0);
      if (!random.one_in(400)) return;
      const auto passing = private_pool(parent, {.fixed_pages = random.one_in(2)});
      if (const auto block = passing->try_allocate({.bytes = 256_KiB})) passing->deallocate(*block);
    };
    const auto [refused, kept] = churn(all, {.steps = scaled(20'000, 500),
                                             .most_blocks = 30,
                                             .bytes = [](Random& random) { return 1 + random.below(random.one_in(3) ? 1_MiB : 8_KiB); },
                                             .meanwhile = meanwhile,
                                             .holds = [&] { return taken() <= kLimit; }});
    EXPECT_TRUE(kept) << "more was taken than the limit";
    did(std::to_string(refused) + " requests refused");
    std::size_t sum = 0;
    for (const auto& memory : all) {
      EXPECT_EQ(memory->stats().in_use_bytes, 0U);
      EXPECT_EQ(memory->audit(), "");
      sum += memory->stats().committed_bytes;
    }
    EXPECT_EQ(sum, taken());
  }
  EXPECT_EQ(parent->stats().committed_bytes, taken());
  EXPECT_EQ(parent->audit(), "");
  parent->trim(0);
  EXPECT_EQ(taken(), 0U);
  EXPECT_EQ(process_memory(device_).committed_bytes, 0U);
}

}  // namespace
}  // namespace berth::testing

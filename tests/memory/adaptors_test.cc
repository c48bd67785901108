// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "support/errors.h"
#include "support/everything.h"
#include "support/misuse_log.h"

namespace berth::testing {
namespace {

TEST(TrackAdaptor, ListsLiveBlocksWithTagAndSite) {
  const auto tracked = track(direct("cpu"));
  const Storage kept = empty({100}, DType::u8, tracked, {.tag = "kept"});
  { const Storage gone = empty({50}, DType::u8, tracked); }
  const std::vector<LiveBlock> live = tracked->live();
  ASSERT_EQ(live.size(), 1U);
  EXPECT_EQ(live[0].block.bytes, 100U);
  EXPECT_EQ(live[0].block.tag, Tag("kept"));
  EXPECT_NE(to_string(live[0].site).find("adaptors_test.cc:"), std::string::npos) << to_string(live[0].site);
  EXPECT_NE(live[0].to_string().find("tag kept"), std::string::npos);
  ASSERT_EQ(tracked->holders().size(), 1U);
  EXPECT_EQ(tracked->holders()[0].bytes, 100U);
}

TEST(TrackAdaptor, LiveBlocksCanBeFreedFromItsList) {
  const auto tracked = track(direct("cpu"));
  (void)tracked->allocate({.bytes = 10});
  for (const LiveBlock& leaked : tracked->live()) tracked->deallocate(leaked.block);
  EXPECT_TRUE(tracked->live().empty());
}

TEST(TrackAdaptor, NamesEveryHolderAndNotTheFirstFew) {
  const auto tracked = track(direct("cpu"));
  std::vector<Storage> kept;
  for (int i = 1; i <= 20; ++i) kept.push_back(empty({i}, DType::u8, tracked, {.tag = Tag("holder " + std::to_string(i))}));
  const std::vector<Holder> holders = tracked->holders();
  ASSERT_EQ(holders.size(), 20U);
  EXPECT_EQ(holders.front().tag, Tag("holder 20"));
  EXPECT_EQ(holders.back().tag, Tag("holder 1"));
  try {
    (void)tracked->allocate({.bytes = std::size_t{1} << 60});
    FAIL() << "was served";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().top_holders.size(), 8U);
  }
}

TEST(TrackAdaptor, FollowsABlockThatGrows) {
  const auto tracked = track(arena("cpu", 1_MiB));
  Block block = tracked->allocate({.bytes = 100, .site = Site::here()});
  const std::uint64_t since = tracked->live()[0].since_ns;
  ASSERT_TRUE(tracked->try_grow(block, 200));
  ASSERT_EQ(tracked->live().size(), 1U);
  EXPECT_EQ(tracked->live()[0].block, block);
  EXPECT_EQ(tracked->live()[0].since_ns, since);
  tracked->deallocate(block);
  EXPECT_TRUE(tracked->live().empty());
}

TEST(TrackAdaptor, ABlockKeepsItsTagWhateverTheCallerSays) {
  const auto tracked = track(arena("cpu", 1_MiB));
  Block block = tracked->allocate({.bytes = 100, .tag = "true"});
  block.tag = "false";
  ASSERT_TRUE(tracked->try_grow(block, 200));
  ASSERT_EQ(tracked->holders().size(), 1U);
  EXPECT_EQ(tracked->holders()[0].tag, Tag("true"));
  EXPECT_EQ(tracked->holders()[0].bytes, 200U);
  tracked->deallocate(block);
  EXPECT_TRUE(tracked->holders().empty());
}

TEST(TraceAdaptor, WritesGrowthAsAFreeAndAnAllocation) {
  const auto traced = trace(arena("cpu", 1_MiB));
  Block block = traced->allocate({.bytes = 100});
  ASSERT_TRUE(traced->try_grow(block, 200));
  EXPECT_FALSE(traced->try_grow(block, 2_MiB));
  traced->deallocate(block);
  EXPECT_EQ(traced->to_csv(), "op,id,bytes,stream\na,1,100,0\nf,1,100,0\na,2,200,0\nf,2,200,0\n");
}

TEST(TraceAdaptor, WritesEventsInOrderAsCsv) {
  const auto traced = trace(direct("cpu"));
  const Block a = traced->allocate({.bytes = 10});
  const Block b = traced->allocate({.bytes = 20});
  traced->deallocate(a);
  traced->deallocate(b);
  EXPECT_EQ(traced->to_csv(), "op,id,bytes,stream\na,1,10,0\na,2,20,0\nf,1,10,0\nf,2,20,0\n");
}

TEST(TraceAdaptor, IsBounded) {
  const auto traced = trace(direct("cpu"), 3);
  for (int i = 0; i < 5; ++i) traced->deallocate(traced->allocate({.bytes = 1}));
  EXPECT_EQ(traced->events().size(), 3U);
  EXPECT_EQ(traced->dropped(), 7U);
}

TEST(Fail, RefusesTheNthEveryKthAndBySize) {
  const auto pattern = [](const FailPlan& plan, std::size_t bytes) {
    const auto failing = fail(direct("cpu"), plan);
    std::string out;
    for (int i = 0; i < 6; ++i) {
      const auto block = failing->try_allocate({.bytes = bytes});
      out += block ? '.' : 'x';
      if (block) failing->deallocate(*block);
    }
    EXPECT_EQ(failing->requests(), 6U);
    EXPECT_EQ(failing->refused(), static_cast<std::uint64_t>(std::ranges::count(out, 'x')));
    return out;
  };
  EXPECT_EQ(pattern({}, 8), "......");
  EXPECT_EQ(pattern({.nth = 3}, 8), "..x...");
  EXPECT_EQ(pattern({.every = 2}, 8), ".x.x.x");
  EXPECT_EQ(pattern({.nth = 1, .every = 3}, 8), "x.x..x");
  EXPECT_EQ(pattern({.at_least_bytes = 100}, 99), "......");
  EXPECT_EQ(pattern({.at_least_bytes = 100}, 100), "xxxxxx");
}

TEST(Adaptors, RefuseToWrapNothing) {
  EXPECT_ERROR(limit(nullptr, 10), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(track(nullptr), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Adaptors, SayWhatTheyAre) {
  const auto all = limit(track(direct("sim:0")), 3_MiB);
  EXPECT_EQ(all->name(), "limit(track(direct))");
  EXPECT_EQ(all->settings(), "limit 3 MiB over track over direct on sim:0");
  EXPECT_EQ(all->device(), Device("sim:0"));
}

TEST(Adaptors, ABlockGoesBackToTheOutermost) {
  const auto below = direct("cpu");
  const auto limited = limit(below, 100);
  const Block block = limited->allocate({.bytes = 100});
  const MisuseLog log;
  below->deallocate(block);
  EXPECT_EQ(log.reported(), std::vector{MisuseKind::foreign_free});
  limited->deallocate(block);
  EXPECT_EQ(log.reported().size(), 1U);
  const auto all = limited->try_allocate({.bytes = 100});
  EXPECT_TRUE(all.has_value());
  if (all) limited->deallocate(*all);
}

TEST(OutOfMemoryReport, IsValidJsonForAnyTag) {
  const Tag hostile("\"\x1b[31m\xff\n");
  const auto limited = limit(direct("cpu"), 10);
  const Block held = limited->allocate({.bytes = 5, .tag = hostile});
  try {
    limited->allocate({.bytes = 6, .tag = hostile});
    FAIL();
  } catch (const OutOfMemory& error) {
    JsonWriter json;
    error.report().write_json(json);
    const nlohmann::json parsed = nlohmann::json::parse(json.take());
    EXPECT_EQ(parsed["requested_bytes"], 6);
    EXPECT_EQ(parsed["top_holders"][0]["bytes"], 5);
    EXPECT_EQ(error.report().to_string().find('\x1b'), std::string::npos) << "an escape must not reach a terminal";
    EXPECT_TRUE(nlohmann::json::accept(to_json(error)));
  }
  limited->deallocate(held);
}

TEST(Pmr, ContainersLiveInAnAllocator) {
  const auto tracked = track(limit(direct("cpu"), 64_KiB));
  MemoryResource resource(tracked);
  {
    std::pmr::vector<int> v(&resource);
    for (int i = 0; i < 1000; ++i) v.push_back(i);
    std::pmr::string s(1000, 'x', &resource);
    EXPECT_EQ(v[999], 999);
    EXPECT_GE(tracked->live().size(), 2U);
    EXPECT_THROW(v.reserve(1 << 20), OutOfMemory);
    EXPECT_EQ(v.size(), 1000U) << "a refused growth leaves the vector as it was";
  }
  EXPECT_TRUE(tracked->live().empty());
  void* const a = resource.allocate(0);
  void* const b = resource.allocate(0);
  EXPECT_NE(a, b) << "zero bytes have addresses of their own";
  resource.deallocate(a, 0);
  resource.deallocate(b, 0);
  EXPECT_TRUE(resource.is_equal(MemoryResource(tracked)));
  EXPECT_FALSE(resource.is_equal(MemoryResource(direct("cpu"))));
  EXPECT_ERROR(MemoryResource(direct("sim:0")), AccessError, ErrorCode::wrong_device);
}

}  // namespace
}  // namespace berth::testing

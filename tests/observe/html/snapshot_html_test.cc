// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "berth/memory/pool.h"
#include "berth/observe/html.h"
#include "html/report_data.h"
#include "observe/html/words.h"

namespace berth::testing {

using namespace internal;
using namespace internal::observe;
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Snapshot small_pool(std::string device) {
  Snapshot pool;
  pool.device = std::move(device);
  pool.allocator = "pool";
  pool.base = 0x10000;
  pool.range_bytes = 1 << 20;
  pool.has_blocks = true;
  pool.tags = {"", "kv", kHostile};
  pool.sites = {"", "decoder.cc:118 (grow)"};
  pool.memory = {{0, 4096}};
  pool.blocks = {{.offset = 0, .bytes = 1024, .requested = 1000, .age_ns = 3'000'000'000, .tag = 1, .site = 1},
                 {.offset = 1024, .bytes = 512, .requested = 512, .tag = 2},
                 {.offset = 1536, .bytes = 512, .requested = 500, .stream_id = 7, .state = BlockState::waiting}};
  pool.free = {{.offset = 2048, .bytes = 1024}, {.offset = 3072, .bytes = 1024, .kind = FreeKind::slab}};
  pool.sum_up();
  return pool;
}

ProcessSnapshot small_snapshot() {
  ProcessSnapshot snapshot;
  snapshot.program = snapshot.reason = kHostile;
  snapshot.process = 4711;
  snapshot.pools = {small_pool("cpu:0"), small_pool("sim:0")};
  return snapshot;
}

TEST(SnapshotReport, DrawsWhatLiesWhere) {
  const std::string page = snapshot_html(small_snapshot(), "small");
  const nlohmann::json range = data_of(page, "range");
  EXPECT_THAT(summed(numbers(range, "offsets")), ElementsAre(0, 1024, 1536, 2048, 3072));
  EXPECT_THAT(numbers(range, "bytes_of"), ElementsAre(1024, 512, 512, 1024, 1024));
  EXPECT_THAT(numbers(range, "kinds"), ElementsAre(0, 0, 1, 2, 3));
  EXPECT_EQ(numbers(range, "ages")[0], 3'000'000'000U);
  EXPECT_EQ(range["tags"][numbers(range, "tag")[0]], "kv");
  EXPECT_EQ(range["sites"][numbers(range, "site")[0]], "decoder.cc:118 (grow)");
  EXPECT_EQ(range["base"], 0x10000);
  EXPECT_THAT(page, HasSubstr("<h2>Addresses of sim:0 pool, 4 KiB committed</h2>"));
}

TEST(SnapshotReport, TellsOfHoldersAndFragmentation) {
  const std::string page = snapshot_html(small_snapshot(), "small");
  EXPECT_THAT(page, HasSubstr("<td class=\"number\" data-key=\"3000000000\">3 s</td>"));
  EXPECT_THAT(page, HasSubstr("<td>0x10400</td>")) << "addresses, as a program prints them";
  EXPECT_THAT(page, HasSubstr("<h2>Fragmentation of each pool</h2>"));
  EXPECT_THAT(page, HasSubstr("title=\"rounding 24 B\""));
  EXPECT_THAT(page, HasSubstr("title=\"waiting 512 B\""));
}

TEST(SnapshotReport, HasATimeOnlyWhereAgesAreKnown) {
  ProcessSnapshot snapshot = small_snapshot();
  EXPECT_EQ(data_of(snapshot_html(snapshot, "a"), "timeline")["clock"], "before");
  for (Snapshot& pool : snapshot.pools)
    for (SnapshotBlock& block : pool.blocks) block.age_ns = 0;
  EXPECT_THAT(snapshot_html(snapshot, "a"), Not(HasSubstr("data-kind=\"timeline\"")));
}

TEST(SnapshotReport, EscapesEveryName) {
  const std::string page = snapshot_html(small_snapshot(), kHostile);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
}

TEST(SnapshotReport, OfARealPoolHasEveryBlock) {
  const auto memory = pool("cpu");
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 300; ++i) blocks.push_back(memory->allocate({.bytes = 100 + 5000 * i, .tag = i % 2 == 0 ? "even" : "odd"}));
  ProcessSnapshot snapshot;
  snapshot.pools.push_back(memory->snapshot());
  const nlohmann::json range = data_of(snapshot_html(snapshot, "real"), "range");
  const std::vector<std::uint64_t> kinds = numbers(range, "kinds");
  EXPECT_EQ(std::ranges::count(kinds, 0), 300);
  EXPECT_THAT(range["tags"], Contains("odd"));
  for (const Block& block : blocks) memory->deallocate(block);
}

TEST(SnapshotReport, OfNothingIsAPage) { EXPECT_THAT(snapshot_html(ProcessSnapshot{}, "empty"), HasSubstr("<h2>Largest blocks</h2>")); }

TEST(DurationText, HasThreeDigits) {
  EXPECT_EQ(observe::duration_text(0), "0 ns");
  EXPECT_EQ(observe::duration_text(999), "999 ns");
  EXPECT_EQ(observe::duration_text(1'500'000), "1.5 ms");
  EXPECT_EQ(observe::duration_text(59'940'000'000), "59.9 s");
  EXPECT_EQ(observe::duration_text(90'000'000'000), "1.5 min");
  EXPECT_EQ(observe::duration_text(200'000'000'000'000), "2.31 d");
}

}  // namespace
}  // namespace berth::testing

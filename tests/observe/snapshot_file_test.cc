// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// Snapshots of a process: written, read back, compared.
namespace berth::testing {

using namespace internal;
namespace {

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const Snapshot* find(const ProcessSnapshot& snapshot, const Allocator& allocator) {
  for (const Snapshot& pool : snapshot.pools) {
    if (pool.allocator_id == allocator.id()) return &pool;
  }
  return nullptr;
}

TEST(SnapshotFile, HoldsEveryStrategyAndComesBackEqual) {
  const auto pooled = pool("cpu");
  const auto plain = direct("cpu");
  std::vector<Block> blocks;
  Random random(seed());
  for (int i = 0; i < 500; ++i) blocks.push_back(pooled->allocate({.bytes = 1 + random.below(300'000), .tag = "a, \"b\"\n\xff"}));
  for (int i = 0; i < 250; ++i) pooled->deallocate(blocks[static_cast<std::size_t>(i)]);
  const Block other = plain->allocate({.bytes = 77});
  const ProcessSnapshot taken = take_snapshot("a test");
  ASSERT_NE(find(taken, *pooled), nullptr);
  ASSERT_NE(find(taken, *plain), nullptr);
  EXPECT_EQ(find(taken, *pooled)->figures.live_blocks, 250U);
  const ProcessSnapshot read = read_snapshot(to_json(taken));
  // Bytes that are not UTF-8 cannot be written in JSON; everything else round-trips.
  ProcessSnapshot expected = taken;
  for (Snapshot& one : expected.pools) {
    for (std::string& tag : one.tags) {
      if (const std::size_t bad = tag.find('\xff'); bad != std::string::npos) tag.replace(bad, 1, "\xef\xbf\xbd");
    }
  }
  EXPECT_TRUE(read == expected);
  for (std::size_t i = 250; i < blocks.size(); ++i) pooled->deallocate(blocks[i]);
  plain->deallocate(other);
}

TEST(SnapshotFile, IsSavedWholeUnderANameWithNumbers) {
  const auto folder = std::filesystem::temp_directory_path() / ("berth-snapshot-test-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string first = save_snapshot((folder / "s-%p-%n.json").string());
  const std::string second = save_snapshot((folder / "s-%p-%n.json").string(), "again");
  EXPECT_NE(first, second);
  EXPECT_NE(first.find("s-" + std::to_string(::getpid()) + "-"), std::string::npos);
  EXPECT_EQ(read_snapshot(content_of(second)).reason, "again");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2) << "nothing unfinished is left";
  EXPECT_ERROR(save_snapshot((folder / "missing" / "s.json").string()), ArgumentError, ErrorCode::invalid_argument);
  std::filesystem::remove_all(folder);
}

TEST(SnapshotFile, RefusesWhatIsNotOne) {
  for (const char* const text : {"", "{}", "[1,2]", R"({"format":"berth snapshot"})", R"({"format":"berth snapshot","version":2})"})
    EXPECT_ERROR(read_snapshot(text), FormatError, ErrorCode::format_error);
}

// With a byte changed, or the end missing, a file is rejected, or gives a snapshot that passes its audit; never
// anything else.
TEST(SnapshotFile, ReadsNothingThatDoesNotMakeSense) {
  const auto memory = pool("cpu");
  std::vector<Block> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(memory->allocate({.bytes = 200'000, .tag = "kv"}));
  memory->deallocate(blocks[2]);
  const std::string good =
      to_json(ProcessSnapshot{.program = "p", .process = 1, .taken_ns = 2, .reason = "r", .pools = {memory->snapshot()}});
  Random random(seed());
  std::uint64_t refused = 0;
  const std::uint64_t tries = scaled(20'000, 500);
  for (std::uint64_t i = 0; i < tries; ++i) {
    std::string bad = good;
    if (random.one_in(4))
      bad.resize(random.below(bad.size()));
    else
      bad[random.below(bad.size())] = static_cast<char>(random.one_in(2) ? '0' + random.below(10) : random.below(256));
    try {
      for (const Snapshot& one : read_snapshot(bad).pools) ASSERT_EQ(one.audit(), "");
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, tries / 4);
  for (const std::size_t i : {0U, 1U, 3U, 4U}) memory->deallocate(blocks[i]);
}

TEST(SnapshotDiff, SaysWhatCameAndWent) {
  const auto memory = pool("cpu");
  const Block stays = memory->allocate({.bytes = 100, .tag = "stays"});
  const Block goes = memory->allocate({.bytes = 5000, .tag = "goes"});
  const Block grows = memory->allocate({.bytes = 10, .tag = "grows"});
  const auto only = [&] {
    return ProcessSnapshot{.program = "p", .process = 1, .taken_ns = 0, .reason = "", .pools = {memory->snapshot()}};
  };
  const ProcessSnapshot before = only();
  memory->deallocate(goes);
  const Block more = memory->allocate({.bytes = 3000, .tag = "grows"});
  const Block comes = memory->allocate({.bytes = 7, .tag = "comes"});
  const ProcessSnapshot after = only();
  EXPECT_TRUE(diff_snapshots(before, before).empty());
  const std::vector<SnapshotChange> changes = diff_snapshots(before, after);
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].after.tag, "goes");
  EXPECT_EQ(changes[0].bytes(), -5000);
  EXPECT_EQ(changes[0].blocks(), -1);
  EXPECT_EQ(changes[1].after.tag, "grows");
  EXPECT_EQ(changes[1].before.bytes, 10U);
  EXPECT_EQ(changes[1].bytes(), 3000);
  EXPECT_EQ(changes[2].after.tag, "comes");
  EXPECT_EQ(changes[2].before.blocks, 0U);
  const std::vector<SnapshotGroup> groups = group_blocks(after);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].tag, "grows");
  EXPECT_EQ(groups[0].bytes, 3010U);
  EXPECT_EQ(groups[0].blocks, 2U);
  // Allocators of two processes are matched by their properties.
  ProcessSnapshot elsewhere = after;
  elsewhere.process = 2;
  elsewhere.pools[0].allocator_id += 1000;
  EXPECT_TRUE(diff_snapshots(after, elsewhere).empty());
  for (const Block& block : {stays, grows, more, comes}) memory->deallocate(block);
}

}  // namespace
}  // namespace berth::testing

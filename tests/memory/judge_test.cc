// SPDX-License-Identifier: Apache-2.0
#include "memory/judge.h"

#include <gtest/gtest.h>

namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

constexpr std::uint64_t kNextSerial = 10;

int g_memory;

Block given() { return {.data = &g_memory, .bytes = 100, .serial = 7, .allocator_id = 3}; }
KnownBlock known() { return {.bytes = 100, .alignment = 64, .serial = 7, .stream_id = 5, .allocator_id = 3, .tag = {}, .live = true}; }

BlockVerdict verdict(const KnownBlock& entry, const Block& block) { return judge(&entry, block, kNextSerial); }
BlockVerdict verdict_without_entry(const Block& block) { return judge(static_cast<const KnownBlock*>(nullptr), block, kNextSerial); }

TEST(Judge, ABlockThatMatchesItsEntryIsOk) { EXPECT_EQ(verdict(known(), given()), BlockVerdict::ok); }

TEST(Judge, ABlockWithoutASerialIsJudgedByTheRest) {
  Block block = given();
  block.serial = 0;
  EXPECT_EQ(verdict(known(), block), BlockVerdict::ok);
  block.bytes = 99;
  EXPECT_EQ(verdict(known(), block), BlockVerdict::size_mismatch);
  KnownBlock freed = known();
  freed.live = false;
  EXPECT_EQ(verdict(freed, block), BlockVerdict::double_free);
}

TEST(Judge, AnotherSizeIsAMismatch) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{99}, std::size_t{101}}) {
    Block block = given();
    block.bytes = bytes;
    EXPECT_EQ(verdict(known(), block), BlockVerdict::size_mismatch) << bytes;
  }
}

TEST(Judge, AnEntryThatIsNotLiveWasFreed) {
  KnownBlock entry = known();
  entry.live = false;
  EXPECT_EQ(verdict(entry, given()), BlockVerdict::double_free);
}

TEST(Judge, AnEntryOfALaterBlockMeansThatThisOneWasFreed) {
  KnownBlock entry = known();
  entry.serial = 8;
  entry.bytes = 200;
  EXPECT_EQ(verdict(entry, given()), BlockVerdict::double_free);
}

TEST(Judge, ABlockOfAnotherAllocatorIsForeign) {
  Block block = given();
  block.allocator_id = 4;
  EXPECT_EQ(verdict(known(), block), BlockVerdict::foreign);
  KnownBlock freed = known();
  freed.live = false;
  EXPECT_EQ(verdict(freed, block), BlockVerdict::foreign) << "also at the address of a freed one";
}

TEST(Judge, WithoutAnEntryTheSerialTellsWhetherItWasHandedOut) {
  Block block = given();
  block.serial = kNextSerial - 1;
  EXPECT_EQ(verdict_without_entry(block), BlockVerdict::double_free);
  block.serial = kNextSerial;
  EXPECT_EQ(verdict_without_entry(block), BlockVerdict::foreign);
  block.serial = 0;
  EXPECT_EQ(verdict_without_entry(block), BlockVerdict::foreign);
}

struct Entry {
  KnownBlock block;
  KnownBlock known() const noexcept { return block; }
};

TEST(Judge, AsksAnEntryWhatItKnows) {
  Entry entry{known()};
  EXPECT_EQ(judge(&entry, given(), kNextSerial), BlockVerdict::ok);
  entry.block.live = false;
  EXPECT_EQ(judge(&entry, given(), kNextSerial), BlockVerdict::double_free);
  const Entry* const none = nullptr;
  EXPECT_EQ(judge(none, given(), kNextSerial), BlockVerdict::double_free);
}

TEST(Judge, CompletesABlockFromItsEntry) {
  Block block = given();
  block.serial = 0;
  Block out;
  complete(&out, block, known());
  EXPECT_EQ(out, (Block{.data = &g_memory, .bytes = 100, .alignment = 64, .stream_id = 5, .serial = 7, .allocator_id = 3}));
  complete(nullptr, block, known());
}

}  // namespace
}  // namespace berth::testing

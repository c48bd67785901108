// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "support/everything.h"
#include "support/misuse_log.h"
#include "support/scale.h"

// Frees of blocks that were never handed out, or were freed before. Each is reported, and nothing changes.
namespace berth::testing {
namespace {

void on_another_thread(const std::function<void()>& work) { std::thread(work).join(); }

void* moved(const void* address, std::ptrdiff_t by) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) + static_cast<std::uintptr_t>(by));
}

struct Wrong {
  std::string what;
  Block block;
};

// Arguments that programs have passed to free. `block` is live, `freed` is not.
std::vector<Wrong> wrong_blocks(const Allocator& pool, const Block& block, const Block& freed, const Block& others, void* on_stack,
                                void* from_malloc) {
  std::vector<Wrong> list;
  const auto at = [&](const std::string& what, void* data) {
    Block b = block;
    b.data = data;
    list.push_back({what, b});
    list.push_back({what + ", by address", pool.block_at(data, block.bytes)});
  };
  const auto bytes = static_cast<std::ptrdiff_t>(block.bytes);
  at("null and one", reinterpret_cast<void*>(1));
  at("null and sixty-four", reinterpret_cast<void*>(64));
  at("the stack", on_stack);
  at("malloc's", from_malloc);
  at("another pool's", others.data);
  at("one byte in", moved(block.data, 1));
  at("one alignment in", moved(block.data, 64));
  at("the middle", moved(block.data, bytes / 2));
  at("the last byte", moved(block.data, bytes - 1));
  at("one byte before", moved(block.data, -1));
  at("one alignment before", moved(block.data, -64));
  at("a page before", moved(block.data, -4096));
  at("far before the range", moved(block.data, -(std::ptrdiff_t{1} << 50)));
  at("far behind the range", moved(block.data, std::ptrdiff_t{1} << 50));
  at("just below the top", reinterpret_cast<void*>(UINTPTR_MAX));
  at("the top page", reinterpret_cast<void*>(UINTPTR_MAX - 4095));
  at("the top bit set", reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(block.data) | std::uintptr_t{1} << 63));
  at("bit 56 set", reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(block.data) | std::uintptr_t{1} << 56));
  at("bit 48 set", reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(block.data) | std::uintptr_t{1} << 48));
  const auto with = [&](const std::string& what, const std::function<void(Block&)>& change) {
    Block b = block;
    change(b);
    list.push_back({what, b});
  };
  with("another place", [](Block& b) { b.cookie += 32; });
  with("a place between two", [](Block& b) { b.cookie += 1; });
  with("no place", [](Block& b) { b.cookie = 0; });
  with("the first place", [](Block& b) { b.cookie = 32; });
  with("a place out of bounds", [](Block& b) { b.cookie = UINT64_MAX; });
  with("a place far behind", [](Block& b) { b.cookie += std::uint64_t{1} << 40; });
  with("the place of another block", [&](Block& b) { b.cookie = freed.cookie; });
  with("another pool's place", [&](Block& b) { b.cookie = others.cookie; });
  with("a later serial", [](Block& b) { b.serial += 1000; });
  with("an earlier serial", [](Block& b) { b.serial -= 1; });
  with("a serial of no cache", [](Block& b) { b.serial = UINT64_MAX; });
  with("one byte less", [](Block& b) { b.bytes -= 1; });
  with("one byte more", [](Block& b) { b.bytes += 1; });
  with("no bytes", [](Block& b) { b.bytes = 0; });
  with("all bytes", [](Block& b) { b.bytes = SIZE_MAX; });
  with("2^24 bytes more", [](Block& b) { b.bytes += std::size_t{1} << 24; });
  with("2^32 bytes more", [](Block& b) { b.bytes += std::size_t{1} << 32; });
  with("another allocator's id", [](Block& b) { b.allocator_id += 1; });
  with("no allocator's id", [](Block& b) { b.allocator_id = 0; });
  list.push_back({"freed before", freed});
  list.push_back({"freed before, by address", pool.block_at(freed.data, freed.bytes)});
  list.push_back({"another pool's block", others});
  list.push_back({"by address, one byte less", pool.block_at(block.data, block.bytes - 1)});
  list.push_back({"by address, no bytes", pool.block_at(block.data, 0)});
  return list;
}

struct Case {
  std::size_t bytes;
  std::uint32_t region_waits = PoolOptions::kNoRegions;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.bytes << " bytes"; }

class PoolMisuse : public ::testing::TestWithParam<Case> {
 protected:
  static std::size_t bytes() { return GetParam().bytes; }
  static std::shared_ptr<Allocator> make() { return pool("cpu", {.region_waits = GetParam().region_waits}); }

  // Every way to free every wrong block is reported once and changes nothing, neither in this pool nor in the
  // other.
  void refuse_all(const std::shared_ptr<Allocator>& memory, const Block& block, const Block& freed) {
    const auto other = make();
    const Block others = other->allocate({.bytes = bytes()});
    void* const from_malloc = std::malloc(bytes());
    int on_stack = 0;
    // The first look-up by address makes a table.
    const auto stats = [&] {
      Stats now = memory->stats();
      now.table_bytes = 0;
      return now;
    };
    const Stats before = stats();
    const Stats other_before = other->stats();
    const std::vector<Wrong> all = wrong_blocks(*memory, block, freed, others, &on_stack, from_malloc);
    EXPECT_GE(all.size(), 38U);
    const MisuseLog log;
    std::size_t reports = 0;
    for (const Wrong& wrong : all) {
      const auto refused = [&](const char* way) {
        EXPECT_EQ(log.reported().size(), ++reports) << wrong.what << way;
        EXPECT_EQ(stats(), before) << wrong.what << way;
      };
      memory->deallocate(wrong.block);
      refused("");
      memory->deallocate_now(wrong.block);
      refused(", now");
      on_another_thread([&] { memory->deallocate(wrong.block); });
      refused(", on another thread");
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_EQ(memory->audit(), "");
    EXPECT_EQ(other->stats(), other_before);
    other->deallocate(others);
    std::free(from_malloc);
    EXPECT_EQ(log.reported().size(), reports) << "the right blocks are freed without a word";
  }
};

TEST_P(PoolMisuse, ForeignFreesAreReportedAndChangeNothing) {
  const auto memory = make();
  memory->deallocate(memory->allocate({.bytes = bytes()}));  // so that the block's serial is not the first
  const Block block = memory->allocate({.bytes = bytes()});
  const Block freed = memory->allocate({.bytes = bytes()});
  memory->deallocate(freed);
  refuse_all(memory, block, freed);
  memory->deallocate(block);
  EXPECT_EQ(memory->stats().live_blocks, 0U);
}

TEST_P(PoolMisuse, AlsoWhenAnotherThreadAllocated) {
  const auto memory = make();
  Block block;
  Block freed;
  on_another_thread([&] {
    memory->deallocate(memory->allocate({.bytes = bytes()}));
    block = memory->allocate({.bytes = bytes()});
    freed = memory->allocate({.bytes = bytes()});
    memory->deallocate(freed);
  });
  refuse_all(memory, block, freed);
  memory->deallocate(block);
  EXPECT_EQ(memory->stats().live_blocks, 0U);
}

TEST_P(PoolMisuse, AFreshPoolRefusesEverything) {
  const auto memory = make();
  const auto other = make();
  const Block others = other->allocate({.bytes = bytes()});
  Block claimed = others;
  claimed.allocator_id = memory->id();
  const MisuseLog log;
  memory->deallocate(claimed);
  memory->deallocate(memory->block_at(others.data, others.bytes));
  memory->deallocate_now(claimed);
  EXPECT_EQ(log.reported(), std::vector(3, MisuseKind::foreign_free));
  EXPECT_EQ(memory->stats(), Stats());
  other->deallocate(others);
}

// Also of a large block that its thread keeps, because it was freed and allocated in turn.
TEST_P(PoolMisuse, ADoubleFreeIsToldBeforeAndAfterReuseOnEitherThread) {
  for (const int turns : {0, 12}) {
    const auto memory = make();
    for (int i = 0; i < turns; ++i) memory->deallocate(memory->allocate({.bytes = bytes()}));
    const Block block = memory->allocate({.bytes = bytes()});
    memory->deallocate(block);
    const MisuseLog log;
    memory->deallocate(block);
    on_another_thread([&] { memory->deallocate(block); });
    EXPECT_EQ(log.reported(), std::vector(2, MisuseKind::double_free));
    const Block reused = memory->allocate({.bytes = bytes()});
    EXPECT_EQ(reused.data, block.data) << "the last one freed is handed out first";
    const Stats before = memory->stats();
    memory->deallocate(block);
    on_another_thread([&] {
      memory->deallocate(block);
      const Block own = memory->allocate({.bytes = bytes()});  // so that this thread has a cache of its own
      memory->deallocate(block);
      memory->deallocate(own);
    });
    memory->deallocate_now(block);
    EXPECT_EQ(log.reported(), std::vector(6, MisuseKind::double_free));
    EXPECT_EQ(memory->stats().live_blocks, before.live_blocks);
    memory->deallocate(reused);
    EXPECT_EQ(log.reported().size(), 6U);
    EXPECT_EQ(memory->stats().in_use_bytes, 0U);
    EXPECT_EQ(memory->audit(), "");
  }
}

TEST_P(PoolMisuse, AFreeByTheOwnerAfterOneByAnotherThreadIsDouble) {
  const auto memory = make();
  const Block block = memory->allocate({.bytes = bytes()});
  on_another_thread([&] {
    memory->deallocate(memory->allocate({.bytes = bytes()}));
    memory->deallocate(block);
  });
  const MisuseLog log;
  memory->deallocate(block);
  memory->deallocate_now(block);
  EXPECT_EQ(log.reported(), std::vector(2, MisuseKind::double_free));
  EXPECT_EQ(memory->stats().frees, 2U);
  EXPECT_EQ(memory->audit(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Of, PoolMisuse, ::testing::Values(Case{65}, Case{4096}, Case{100'000}, Case{128_KiB}, Case{300'000}, Case{4_MiB}, Case{300'000, 0}),
    [](const auto& param) { return std::to_string(param.param.bytes) + (param.param.region_waits == 0 ? "BytesOfARegion" : "Bytes"); });

std::atomic<std::uint64_t> g_reports{0};

// Two threads free the same block at the same time. One free counts; the other is reported, in some cases only
// when the block's owner next reads its inbox.
TEST(PoolMisuse, OfTwoFreesAtTheSameMomentOneCounts) {
  const MisuseHandler before = set_misuse_handler([](const Misuse& misuse) noexcept {
    if (misuse.kind == MisuseKind::double_free) ++g_reports;
  });
  g_reports = 0;
  const auto memory = pool("cpu");
  const std::uint64_t rounds = scaled(100'000, 500);
  std::vector<Block> blocks(64);
  std::atomic<std::uint64_t> go{0};
  std::atomic<std::uint64_t> done{0};
  std::vector<std::thread> threads;
  constexpr std::uint64_t kThreads = 2;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      memory->deallocate(memory->allocate({.bytes = 64}));  // makes a cache for this thread
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        while (go.load() < round) std::this_thread::yield();
        for (const Block& block : blocks) memory->deallocate(block);
        ++done;
      }
    });
  }
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    for (Block& block : blocks) block = memory->allocate({.bytes = 1 + 613 * (round % 300)});
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i) ASSERT_NE(blocks[i].data, blocks[i + 1].data) << "handed out twice";
    go = round;
    while (done.load() < kThreads * round) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  memory->trim(0);  // reads every inbox
  memory->deallocate(memory->allocate({.bytes = 64}));
  memory->deallocate(memory->allocate({.bytes = 1000}));  // and this one reports it
  set_misuse_handler(before);
  const Stats now = memory->stats();
  EXPECT_EQ(now.in_use_bytes, 0U);
  EXPECT_EQ(now.live_blocks, 0U);
  EXPECT_EQ(now.frees, rounds * blocks.size() + kThreads + 2);
  EXPECT_EQ(g_reports, rounds * blocks.size()) << "each second free is reported once";
  EXPECT_EQ(memory->audit(), "");
  did(std::to_string(rounds * blocks.size()) + " blocks freed twice");
}

}  // namespace
}  // namespace berth::testing

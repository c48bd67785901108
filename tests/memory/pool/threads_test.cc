// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "memory/pool/pool_core.h"
#include "support/everything.h"
#include "support/heap_faults.h"
#include "support/misuse_log.h"
#include "support/scale.h"

// Many threads on one pool: blocks change hands, threads start and end, others trim and query meanwhile.
namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

constexpr int kThreads = 8;

// The first and the last byte identify the block; the bytes between belong to the thread that has it.
unsigned char mark_of(const Block& block) { return static_cast<unsigned char>(block.serial * 0x9d + 7); }
void write(const Block& block) {
  auto* const data = static_cast<unsigned char*>(block.data);
  data[0] = data[block.bytes - 1] = mark_of(block);
}
bool is_intact(const Block& block) {
  const auto* const data = static_cast<const unsigned char*>(block.data);
  return data[0] == mark_of(block) && data[block.bytes - 1] == mark_of(block);
}

// Where blocks change hands.
class Exchange {
 public:
  void put(const Block& block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return blocks_.size();
  }
  bool take(Block& block) {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return false;
    block = blocks_.front();
    blocks_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<Block> blocks_;
};

// Small ones, and some of the others, or more of the sizes that come from regions.
enum class Sizes : bool { all, medium };

std::size_t any_size(Random& random, Sizes sizes) {
  const std::uint64_t kind = random.below(1000);
  if (sizes == Sizes::medium && kind < 500) return 120'000 + random.below(1_MiB);
  return 1 + random.below(kind < 900 ? 4096 : kind < 995 ? 100'000 : 2_MiB);
}

struct Counts {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  bool right = true;
};

void work(Allocator& memory, Exchange& exchange, std::uint64_t steps, std::uint64_t seed, Sizes sizes, Counts& counts) {
  Random random(seed);
  std::vector<Block> own;
  const auto free = [&](const Block& block) {
    counts.right = counts.right && is_intact(block);
    random.one_in(500) ? memory.deallocate_now(block) : memory.deallocate(block);
    ++counts.frees;
  };
  for (std::uint64_t i = 0; i < steps; ++i) {
    const std::uint64_t kind = random.below(100);
    if (kind < 50 && own.size() < 200) {
      const auto block = memory.try_allocate({.bytes = any_size(random, sizes)});
      if (!block) continue;
      ++counts.allocations;
      write(*block);
      own.push_back(*block);
    } else if (kind < 80 && !own.empty()) {
      std::swap(own[random.below(own.size())], own.back());
      free(own.back());
      own.pop_back();
    } else if (kind < 90 && !own.empty()) {
      exchange.put(own.back());
      own.pop_back();
    } else if (Block block; exchange.take(block)) {
      free(block);
    }
  }
  for (const Block& block : own) exchange.put(block);  // the thread's blocks outlive it
}

// One thread for each of the counts.
void work_together(Allocator& memory, Exchange& exchange, std::uint64_t steps, std::vector<Counts>& counts, Sizes sizes = Sizes::all) {
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < counts.size(); ++t) {
    threads.emplace_back([&, t] { work(memory, exchange, steps, seed() + t, sizes, counts[t]); });
  }
  for (std::thread& thread : threads) thread.join();
}

void expect_empty(const std::shared_ptr<Allocator>& memory, Exchange& exchange, const std::vector<Counts>& counts) {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  for (const Counts& c : counts) {
    allocations += c.allocations;
    frees += c.frees;
    EXPECT_TRUE(c.right) << "a block was written over";
  }
  EXPECT_EQ(memory->audit(), "");
  Stats now = memory->stats();
  EXPECT_EQ(now.allocations, allocations);
  EXPECT_EQ(now.frees, frees);
  for (Block block; exchange.take(block); ++frees) {
    EXPECT_TRUE(is_intact(block));
    memory->deallocate(block);
  }
  now = memory->stats();
  EXPECT_EQ(now.live_blocks, 0U);
  EXPECT_EQ(now.in_use_bytes, 0U);
  EXPECT_EQ(now.frees, allocations);
  EXPECT_EQ(memory->audit(), "");
  memory->trim(0);
  EXPECT_EQ(memory->stats().committed_bytes, 0U) << "all caches give back what they keep";
  EXPECT_EQ(memory->audit(), "");
}

void run_threads(const std::shared_ptr<Allocator>& memory, std::uint64_t steps, std::uint64_t lives, Sizes sizes = Sizes::all) {
  Exchange exchange;
  std::vector<Counts> counts(kThreads * lives);
  const MisuseLog log;
  for (std::uint64_t life = 0; life < lives; ++life) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      const std::uint64_t n = life * kThreads + static_cast<std::uint64_t>(t);
      threads.emplace_back([&, n] { work(*memory, exchange, steps, seed() + n, sizes, counts[n]); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_TRUE(log.reported().empty());
  expect_empty(memory, exchange, counts);
  did(std::to_string(kThreads * lives) + " threads of " + std::to_string(steps) + " operations, seed " + std::to_string(seed()));
}

TEST(PoolThreads, PassBlocksAround) { run_threads(pool("cpu"), scaled(2'000'000, 5000), 1); }

TEST(PoolThreads, EndWithFullCachesAndOthersTakeOver) { run_threads(pool("cpu"), scaled(100'000, 500), 20); }

TEST(PoolThreads, PassBlocksAroundAtALimit) { run_threads(pool("cpu", {.limit_bytes = 32_MiB}), scaled(500'000, 2000), 2); }

TEST(PoolThreads, PassMediumBlocksAround) {
  run_threads(pool("cpu", {.region_waits = 0}), scaled(500'000, 2000), 2, Sizes::medium);
  run_threads(pool("cpu", {.limit_bytes = 256_MiB, .region_waits = 0}), scaled(500'000, 2000), 2, Sizes::medium);
}

// Trim, reserve, stats and audit from another thread than those that allocate.
void work_while_others_ask(const std::shared_ptr<Allocator>& memory, Sizes sizes) {
  Exchange exchange;
  std::vector<Counts> counts(kThreads);
  std::atomic<bool> stop{false};
  std::atomic<bool> adds_up{true};
  std::uint64_t asked = 0;
  std::thread asking([&] {
    Random random(seed());
    while (!stop) {
      switch (random.below(4)) {
        case 0: memory->trim(random.below(16_MiB)); break;
        case 1: memory->reserve(random.below(8_MiB)); break;
        case 2: {
          const Hold quiet = memory->hold();
          break;
        }
        default: break;
      }
      const Stats now = memory->stats();
      if (now.in_use_bytes + now.cached_bytes != now.committed_bytes || now.allocations != now.frees + now.live_blocks ||
          now.in_use_bytes > now.peak_in_use_bytes || now.in_use_bytes > now.committed_bytes ||
          now.committed_bytes > now.peak_committed_bytes || now.peak_in_use_bytes > now.peak_committed_bytes)
        adds_up = false;
      ++asked;
    }
  });
  work_together(*memory, exchange, scaled(500'000, 3000), counts, sizes);
  stop = true;
  asking.join();
  EXPECT_TRUE(adds_up) << "stats did not add up";
  expect_empty(memory, exchange, counts);
  did("asked " + std::to_string(asked) + " times");
}

TEST(PoolThreads, WorkWhileOthersTrimAndAsk) { work_while_others_ask(pool("cpu"), Sizes::all); }
TEST(PoolThreads, WorkInRegionsWhileOthersTrimAndAsk) { work_while_others_ask(pool("cpu", {.region_waits = 0}), Sizes::medium); }

// An audit finds nothing while blocks are on their way between threads.
void work_while_others_audit(const std::shared_ptr<Allocator>& memory, Sizes sizes) {
  Exchange exchange;
  std::vector<Counts> counts(kThreads);
  std::atomic<bool> stop{false};
  std::string found;  // by the first audit that was not empty
  std::thread asking([&] {
    while (!stop && found.empty()) {
      found = memory->audit();
      // An audit locks all threads out; let them make progress.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  work_together(*memory, exchange, scaled(500'000, 3000), counts, sizes);
  stop = true;
  asking.join();
  EXPECT_EQ(found, "");
  expect_empty(memory, exchange, counts);
}

TEST(PoolThreads, WorkWhileOthersAudit) { work_while_others_audit(pool("cpu"), Sizes::all); }
TEST(PoolThreads, WorkInRegionsWhileOthersAudit) { work_while_others_audit(pool("cpu", {.region_waits = 0}), Sizes::medium); }

// One thread only allocates, the others only free.
TEST(PoolThreads, OneAllocatesWhatOthersFree) {
  const auto memory = pool("cpu");
  const std::uint64_t count = scaled(4'000'000, 10'000);
  std::vector<Exchange> exchanges(3);
  std::atomic<bool> right{true};
  std::vector<std::thread> threads;
  for (Exchange& mine : exchanges) {
    threads.emplace_back([&] {
      memory->deallocate(memory->allocate({.bytes = 64}));
      for (;;) {
        Block block;
        if (!mine.take(block)) {
          std::this_thread::yield();
          continue;
        }
        if (!block) return;
        if (!is_intact(block)) right = false;
        memory->deallocate(block);
      }
    });
  }
  Random random(seed());
  for (std::uint64_t i = 0; i < count; ++i) {
    const Block block = memory->allocate({.bytes = 1 + random.below(random.one_in(10) ? 60'000 : 500)});
    write(block);
    exchanges[i % exchanges.size()].put(block);
  }
  for (Exchange& exchange : exchanges) exchange.put({});
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(right) << "a block was written over";
  const Stats now = memory->stats();
  EXPECT_EQ(now.live_blocks, 0U);
  EXPECT_EQ(now.in_use_bytes, 0U);
  EXPECT_EQ(now.allocations, count + exchanges.size());
  EXPECT_EQ(memory->audit(), "");
  did(std::to_string(count) + " blocks handed over");
}

// Each thread frees and allocates a large block in turn, which it then keeps; meanwhile others free some of
// these, use them elsewhere, grow them, inspect and trim.
TEST(PoolThreads, KeepALargeBlockEach) {
  const Device device = make_sim({.capacity_bytes = 1_GiB, .page_bytes = 2_MiB});
  const auto memory = pool(device);
  const Stream other = make_stream(device);
  const std::uint64_t count = scaled(300'000, 600);
  Exchange handed_over;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed() + static_cast<std::uint64_t>(t));
      const std::size_t usual = 1_MiB << t % 3;
      for (std::uint64_t i = 0; i < count; ++i) {
        Block block = memory->allocate({.bytes = random.one_in(40) ? 300'000 + random.below(100'000) : usual});
        const std::uint64_t what = random.below(200);
        if (what == 0) memory->used_on(block, other);
        if (what == 1) (void)memory->try_grow(block, block.bytes + 100'000);
        if (what == 2 && handed_over.count() < 32) {
          handed_over.put(block);
        } else if (what == 3) {
          memory->deallocate_now(block);
        } else {
          memory->deallocate(block);
        }
      }
      --running;
    });
  }
  std::thread watcher([&] {
    while (running > 0) {
      ASSERT_EQ(memory->audit(), "");
      memory->release_cached();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const auto free_what_came = [&] {
    for (Block block; handed_over.take(block);) memory->deallocate(block);
  };
  while (running > 0) free_what_came();
  for (std::thread& thread : threads) thread.join();
  free_what_came();
  watcher.join();
  EXPECT_EQ(memory->audit(), "");
  EXPECT_EQ(memory->stats().live_blocks, 0U);
  EXPECT_EQ(memory->stats().in_use_bytes, 0U);
  memory->release_cached();
  EXPECT_EQ(memory->stats().committed_bytes, 0U) << "nothing stays with a thread";
  did(std::to_string(count * kThreads) + " large blocks");
}

// The first requests of a pool come from many threads at the same time.
TEST(PoolThreads, OpenAPoolTogether) {
  for (std::uint64_t round = 0; round < scaled(2000, 20); ++round) {
    const auto memory = pool("cpu");
    std::atomic<int> waiting{kThreads};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        const Block block = memory->allocate({.bytes = t % 2 == 0 ? 64U : 500'000U});
        write(block);
        memory->deallocate(block);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(memory->audit(), "");
    ASSERT_EQ(memory->stats().allocations, static_cast<std::uint64_t>(kThreads));
    ASSERT_EQ(memory->stats().in_use_bytes, 0U);
  }
}

// Another thread waits for the mutex from the first block that is counted on, and has it before the last is. Totals of
// tags whose numbers are far apart lie in chunks of their own: each part of the blocks makes one, and sometimes a longer list
// of them, which is when this thread can look, and give the other time.
TEST(PoolThreads, OthersGetTheirTurnWhileHoldersAreCounted) {
  constexpr std::size_t kParts = 12;
  const auto memory = pool("cpu");
  std::vector<Block> live;
  Tag tag("counted first");
  for (std::size_t part = 0; part < kParts; ++part) {
    for (std::size_t i = 0; i < 20'000; ++i) live.push_back(memory->allocate({.bytes = 64, .tag = tag}));  // a step visits 16,000
    for (const unsigned next = tag.id() + 64; tag.id() < next;) tag = Tag("number " + std::to_string(tag.id()));
  }
  enum Stage : int { ready, counting, waiting, served };
  std::atomic<int> stage{ready};
  std::thread other([&] {
    while (stage.load() != counting) std::this_thread::yield();
    stage = waiting;
    const Block block = memory->allocate({.bytes = 300'000});
    stage = served;
    memory->deallocate(block);
  });
  std::vector<int> seen;
  seen.reserve(100);
  {
    const AtNew look([&] {
      if (seen.empty()) stage = counting;
      while (stage.load() == counting) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      seen.push_back(stage.load());
    });
    (void)memory->holders();
  }
  other.join();
  ASSERT_GE(seen.size(), kParts);
  EXPECT_EQ(seen[0], waiting);
  EXPECT_EQ(seen[kParts - 1], served) << "in the sixth part at the earliest";
  for (const Block& block : live) memory->deallocate(block);
}

TEST(PoolThreads, HoldersAreCountedInStepsWhileOthersWork) {
  constexpr std::size_t kBlocks = 50'017;  // a step visits 16,000
  const auto memory = pool("cpu");
  const Tag tags[] = {Tag("odd"), Tag("even")};
  std::vector<Block> live;
  for (std::size_t i = 0; i < kBlocks; ++i) live.push_back(memory->allocate({.bytes = 64, .tag = tags[i % 2]}));
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) memory->deallocate(memory->allocate({.bytes = 300'000, .tag = Tag("other")}));
  });
  for (int round = 0; round < 20; ++round) {
    for (const Holder& holder : memory->holders()) {
      if (holder.tag == Tag("other")) continue;
      const std::size_t blocks = kBlocks / 2 + (holder.tag == tags[0] ? kBlocks % 2 : 0);
      ASSERT_EQ(holder.blocks, blocks);
      ASSERT_EQ(holder.bytes, 64 * blocks);
    }
  }
  stop.store(true);
  other.join();
  EXPECT_EQ(memory->holders().size(), 2U);
  for (const Block& block : live) memory->deallocate(block);
  EXPECT_TRUE(memory->holders().empty());
}

}  // namespace
}  // namespace berth::testing

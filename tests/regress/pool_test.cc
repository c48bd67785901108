// SPDX-License-Identifier: Apache-2.0
// Bugs that tests of the pool have found. Each comment describes the bug.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "os/inject.h"
#include "support/everything.h"
#include "support/heap_faults.h"
#include "support/hooked_backend.h"
#include "support/misuse_log.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

void on_another_thread(const std::function<void()>& work) { std::thread(work).join(); }

// While a thread fetched a batch of blocks, others that found its inbox full moved the inbox into its bins. The
// batch then overflowed the bin.
TEST(Regress, ABatchFindsRoomInABinThatOthersFilled) {
  HookedBackend& device = hooked_backend();
  const auto memory = pool("hooked:0");
  constexpr std::size_t kBytes = 64;
  // Blocks that another thread holds, and a bin that has grown to its maximum.
  std::vector<Block> sent;
  for (int i = 0; i < 400; ++i) sent.push_back(memory->allocate({.bytes = kBytes}));
  std::vector<Block> own;
  for (int i = 0; i < 63; ++i) own.push_back(memory->allocate({.bytes = kBytes}));
  for (const Block& block : own) memory->deallocate(block);
  own.clear();
  bool hooked = false;
  device.at_next_commit([&] {
    hooked = true;
    on_another_thread([&] {
      memory->deallocate(memory->allocate({.bytes = 100000}));  // makes a cache for this thread
      for (const Block& block : sent) memory->deallocate(block);
    });
  });
  while (!hooked) {
    own.push_back(memory->allocate({.bytes = kBytes}));
    ASSERT_LT(own.size(), 100'000U);
  }
  EXPECT_EQ(memory->audit(), "");
  for (const Block& block : own) memory->deallocate(block);
  EXPECT_EQ(memory->stats().live_blocks, 0U);
  EXPECT_EQ(memory->audit(), "");
}

// The owner read its inbox until it was empty, and its senders did not pause: blocks that fitted into no bin
// overflowed the list in which they are returned to the slabs. The address sanitizer shows it.
TEST(Regress, AnInboxThatFillsWhileItIsReadIsNotReadForEver) {
  const auto memory = pool("cpu");
  constexpr std::size_t kBlocks = 20'000;
  constexpr int kSenders = 4;
  for (std::uint64_t round = 0; round < scaled(200, 10); ++round) {
    std::vector<std::vector<Block>> sent(kSenders);
    for (std::size_t i = 0; i < kBlocks; ++i) sent[i % kSenders].push_back(memory->allocate({.bytes = 4000}));
    std::vector<std::thread> senders;
    std::atomic<int> left{kSenders};
    for (const auto& mine : sent) {
      senders.emplace_back([&] {
        memory->deallocate(memory->allocate({.bytes = 64}));
        for (const Block& block : mine) memory->deallocate(block);
        --left;
      });
    }
    while (left > 0) memory->deallocate(memory->allocate({.bytes = 64 + 64 * (round % 16)}));
    for (std::thread& sender : senders) sender.join();
    ASSERT_EQ(memory->audit(), "");
  }
}

// A size was compared by its low bits, and its size class used unchecked: it indexed far beyond the bins.
TEST(Regress, AnAbsurdSizeIsAMismatch) {
  const auto memory = pool("cpu");
  const Block block = memory->allocate({.bytes = 65});
  memory->deallocate(memory->allocate({.bytes = 65}));
  const Stats before = memory->stats();
  Block wrong = block;
  wrong.bytes = 9 * (std::size_t{1} << 37) + 65;
  const MisuseLog log;
  memory->deallocate(wrong);
  EXPECT_EQ(log.reported(), std::vector{MisuseKind::size_mismatch});
  EXPECT_EQ(memory->stats(), before);
  memory->deallocate(block);
}

// Slabs were aligned by address, and looked up by their offset in the range: two had the same entry where the
// range did not begin at a multiple of 16 KiB.
TEST(Regress, ARangeMayBeginAtAnyPage) {
  (void)hooked_backend();
  const auto memory = pool("hooked:0");
  std::vector<Block> blocks;
  for (const std::size_t bytes : {64U, 1000U, 5000U, 16384U, 20000U, 100000U, 200000U}) {
    for (int i = 0; i < 100; ++i) blocks.push_back(memory->allocate({.bytes = bytes}));
  }
  for (int i = 0; i < 50; ++i) blocks.push_back(memory->allocate({.bytes = 4096, .alignment = 16_KiB}));
  const MisuseLog log;
  for (const Block& block : blocks) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % block.alignment, 0U);
    memory->deallocate(memory->block_at(block.data, block.bytes));
  }
  EXPECT_TRUE(log.reported().empty());
  EXPECT_EQ(memory->stats().live_blocks, 0U);
  memory->trim(0);
  EXPECT_EQ(memory->audit(), "");
  EXPECT_EQ(memory->stats().committed_bytes, 0U);
}

// The constructor of the extents allocates from the heap and is noexcept: without heap the process was
// terminated.
TEST(Regress, TheFirstRequestFailsWellWithoutAHeap) {
  for (std::uint64_t nth = 1;; ++nth) {
    const auto memory = pool("cpu");
    std::optional<Block> block;
    bool happened = false;
    {
      const FailNthNew fault(nth);
      block = memory->try_allocate({.bytes = 64});
      happened = fault.happened();
    }
    EXPECT_EQ(memory->audit(), "");
    const std::optional<Block> again = memory->try_allocate({.bytes = 64});
    ASSERT_TRUE(again) << "after failing number " << nth;
    memory->deallocate(*again);
    if (block) memory->deallocate(*block);
    if (!happened) break;
  }
}

// The report of a refusal ran out of heap while all caches were closed; they stayed closed, and the next call
// waited for ever.
TEST(Regress, AReportThatCannotBeMadeLeavesThePoolOpen) {
  const auto memory = pool("cpu", {.limit_bytes = 8_MiB});
  const Block block = memory->allocate({.bytes = 64, .tag = "holder"});
  for (std::uint64_t nth = 1;; ++nth) {
    bool happened = false;
    try {
      const FailNthNew fault(nth);
      try {
        memory->allocate({.bytes = 64_MiB});
      } catch (...) {
        happened = fault.happened();
        throw;
      }
    } catch (const OutOfMemory&) {
    } catch (const std::bad_alloc&) {
    }
    std::promise<void> done;
    std::thread([&] {
      memory->deallocate(memory->allocate({.bytes = 64}));
      done.set_value();
    }).detach();
    ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready) << "hangs after failing number " << nth;
    if (!happened) break;
  }
  memory->deallocate(block);
}

// One thread allocates, another frees: the first thread's count only ever grew, and the peak with it.
TEST(Regress, ThePeakIsNotTheSumOfAllThatWasHandedOver) {
  const auto memory = pool("cpu");
  Block passed;
  for (int i = 0; i < 5; ++i) memory->deallocate(memory->allocate({.bytes = 1000}));
  std::atomic<int> turn{0};
  std::thread other([&] {
    memory->deallocate(memory->allocate({.bytes = 1000}));
    for (int i = 0; i < 10'000; ++i) {
      while (turn.load() != 1) std::this_thread::yield();
      memory->deallocate(passed);
      turn = 0;
    }
    while (turn.load() != 2) std::this_thread::yield();  // its counts are not yet merged
  });
  for (int i = 0; i < 10'000; ++i) {
    while (turn.load() != 0) std::this_thread::yield();
    passed = memory->allocate({.bytes = 1000});
    turn = 1;
  }
  while (turn.load() != 0) std::this_thread::yield();
  const Stats now = memory->stats();
  turn = 2;
  other.join();
  EXPECT_EQ(now.in_use_bytes, 0U);
  EXPECT_LE(now.peak_in_use_bytes, 150'000U);
  EXPECT_LE(now.peak_in_use_bytes, now.peak_committed_bytes);
}

// A free under the lock was subtracted from the sum before the thread's own allocations were added.
TEST(Regress, ThePeakKnowsWhatWasInUseBeforeAFree) {
  const auto memory = pool("cpu");
  const Block first = memory->allocate({.bytes = 1000});
  (void)memory->stats();
  const Block second = memory->allocate({.bytes = 1000});
  memory->deallocate_now(first);
  EXPECT_EQ(memory->stats().peak_in_use_bytes, 2000U);
  memory->deallocate(second);
}

// Memory was counted before the device had committed it, and the peak only afterwards; an audit in between
// found an error.
TEST(Regress, StatsAndAuditAreRightWhileAnotherThreadIsAtTheDevice) {
  HookedBackend& device = hooked_backend();
  const auto memory = pool("hooked:0");
  Stats during;
  std::string audit;
  device.at_next_commit([&] {
    on_another_thread([&] {
      during = memory->stats();
      audit = memory->audit();
    });
  });
  const Block block = memory->allocate({.bytes = 1_MiB});
  EXPECT_LE(during.committed_bytes, during.peak_committed_bytes);
  EXPECT_EQ(audit, "");
  memory->deallocate(block);
}

// A long free run among the slabs was taken for the reserved memory, but no large block is cut from there.
TEST(Regress, ReserveDoesNotCountOnMemoryOfSlabs) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device);
  std::vector<Block> small;
  for (int i = 0; i < 4000; ++i) small.push_back(memory->allocate({.bytes = 1000}));
  for (const Block& block : small) memory->deallocate(block);
  memory->trim(SIZE_MAX);  // only returns the thread's blocks to their slabs
  memory->reserve(1_MiB);
  const std::uint64_t commits = memory->stats().commits;
  const Block block = memory->allocate({.bytes = 1_MiB});
  EXPECT_EQ(memory->stats().commits, commits) << "the device was asked for what was reserved";
  memory->deallocate(block);
}

// A limit below the size of a huge page served nothing.
TEST(Regress, ASmallLimitServesSmallRequests) {
  const auto memory = pool("cpu", {.limit_bytes = 1_MiB});
  const auto block = memory->try_allocate({.bytes = 1000});
  ASSERT_TRUE(block);
  memory->deallocate(*block);
}

std::atomic<int> g_countdown{0};

std::size_t address_space_bytes() {
  std::size_t pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "re")) {
    unsigned long long size = 0;
    if (std::fscanf(file, "%llu", &size) == 1) pages = size;
    std::fclose(file);
  }
  return pages * 4096;
}

// The table of entries was reserved again after the reservation that follows it had failed, and the first was
// leaked.
TEST(Regress, AnOpeningThatFailsHalfWayKeepsNothing) {
  const auto attempt = [](int nth) {
    const auto memory = pool("cpu");
    g_countdown = nth;
    os::set_injector([](std::string_view call) noexcept { return call != "munmap" && --g_countdown == 0 ? ENOMEM : 0; });
    for (int i = 0; i < 2; ++i) {
      if (const auto block = memory->try_allocate({.bytes = 64})) memory->deallocate(*block);
    }
    os::set_injector(nullptr);
  };
  for (int nth = 1; nth < 12; ++nth) attempt(nth);
  const std::size_t before = address_space_bytes();
  for (int nth = 1; nth < 12; ++nth) attempt(nth);
  EXPECT_LT(address_space_bytes(), before + 1_GiB) << "addresses were leaked";
}

}  // namespace
}  // namespace berth::testing

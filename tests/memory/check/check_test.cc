// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "base/random.h"
#include "memory/check/reports.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/heap_faults.h"
#include "support/hooked_backend.h"
#include "support/scale.h"

// Deliberate mistakes, each of which must be reported, and legal use, which must not be.
namespace berth::testing {

using namespace internal;
namespace {

// Return addresses of the last calls of these two functions, expected on the stacks of the frees they make.
std::atomic<const void*> g_first_caller{nullptr};
std::atomic<const void*> g_second_caller{nullptr};

[[gnu::noinline]] void free_first(Allocator& allocator, const Block& block) {
  g_first_caller = __builtin_return_address(0);
  allocator.deallocate(block);
  asm volatile("" ::: "memory");  // prevents a tail call
}
[[gnu::noinline]] void free_again(Allocator& allocator, const Block& block) {
  g_second_caller = __builtin_return_address(0);
  allocator.deallocate(block);
  asm volatile("" ::: "memory");
}

bool came_from(const CallSite& call, const void* caller) { return std::ranges::find(call.frames, caller) != std::end(call.frames); }

bool is_here(const Site& site, unsigned line) { return site.line == line && std::strstr(site.file, "check_test.cc") != nullptr; }

void poke_device(const Block& block, std::size_t offset) {
  unsigned char byte = 0;
  copy_bytes(&byte, "cpu", static_cast<std::byte*>(block.data) + offset, block.device, 1);
  fill_bytes(static_cast<std::byte*>(block.data) + offset, block.device, static_cast<unsigned char>(byte ^ 1U), 1);
}

TEST(Check, ADoubleFreeIsReportedWithItsThreeSites) {
  const auto checked = check(direct("cpu"));
  const Reports reports;
  const unsigned line = __LINE__ + 1;
  const Block block = checked->allocate({.bytes = 100, .tag = "twice", .site = Site::here()});
  free_first(*checked, block);
  EXPECT_TRUE(reports.all().empty());
  free_again(*checked, block);
  ASSERT_EQ(reports.all().size(), 1U);
  const Misuse misuse = reports.all()[0];
  EXPECT_EQ(misuse.kind, MisuseKind::double_free);
  EXPECT_EQ(misuse.address, block.data);
  EXPECT_EQ(misuse.tag, Tag("twice"));
  EXPECT_TRUE(is_here(misuse.allocated.site, line));
  EXPECT_NE(misuse.allocated.frames[0], nullptr);
  EXPECT_TRUE(came_from(misuse.freed, g_first_caller));
  EXPECT_FALSE(came_from(misuse.freed, g_second_caller));
  EXPECT_TRUE(came_from(misuse.here, g_second_caller));
  EXPECT_FALSE(came_from(misuse.here, g_first_caller));
}

TEST(Check, ADoubleFreeByAnotherThreadIsReportedWithTheSiteOfTheFirst) {
  const auto checked = check(pool("cpu"));
  const Reports reports;
  const Block block = checked->allocate({.bytes = 100});
  std::thread([&] { free_first(*checked, block); }).join();
  free_again(*checked, block);
  ASSERT_EQ(reports.count(MisuseKind::double_free), 1U);
  EXPECT_TRUE(came_from(reports.all()[0].freed, g_first_caller));
}

TEST(Check, ADoubleFreeIsKnownAfterTheBlockHasLeftTheQuarantine) {
  const auto checked = check(pool("cpu"), {.quarantine_blocks = 1});
  const Reports reports;
  const Block block = checked->allocate({.bytes = 100});
  free_first(*checked, block);
  for (int i = 0; i < 100; ++i) checked->deallocate(checked->allocate({.bytes = 100}));
  free_again(*checked, block);
  ASSERT_EQ(reports.count(MisuseKind::double_free), 1U);
  EXPECT_TRUE(came_from(reports.all()[0].freed, g_first_caller));
  for (int i = 0; i < 10000; ++i) checked->deallocate(checked->allocate({.bytes = 100}));
  free_again(*checked, block);
  ASSERT_EQ(reports.count(MisuseKind::double_free), 2U) << "its sites are forgotten by now, and it is still a double free";
  EXPECT_FALSE(reports.all()[1].freed);
}

TEST(Check, ADoubleFreeByAddressAloneIsReportedWithSites) {
  const auto checked = check(direct("cpu"));
  const Reports reports;
  const Block block = checked->block_at(checked->allocate({.bytes = 100}).data, 100);
  free_first(*checked, block);
  free_again(*checked, block);
  ASSERT_EQ(reports.count(MisuseKind::double_free), 1U);
  EXPECT_TRUE(came_from(reports.all()[0].freed, g_first_caller));
}

TEST(Check, SitesReachTheReportThroughOtherAdaptors) {
  const auto checked = limit(track(check(direct("cpu"))), 1_MiB);
  const Reports reports;
  const Block block = checked->allocate({.bytes = 100, .site = Site::here()});
  free_first(*checked, block);
  free_again(*checked, block);
  ASSERT_EQ(reports.count(MisuseKind::double_free), 1U);
  EXPECT_EQ(reports.last_allocator(), "limit(track(check(direct)))");
  EXPECT_TRUE(came_from(reports.all()[0].freed, g_first_caller));
  EXPECT_NE(reports.all()[0].allocated.site.file, nullptr);
}

TEST(Check, AForeignFreeAndAWrongSizeAreReportedWithTheCall) {
  const auto checked = check(direct("cpu"));
  const auto other = check(direct("cpu"));
  const Block block = checked->allocate({.bytes = 100, .site = Site::here()});
  const Reports reports;
  free_again(*other, block);
  Block wrong = block;
  wrong.bytes = 99;
  free_again(*checked, wrong);
  int local = 0;
  free_again(*checked, checked->block_at(&local, sizeof local));
  ASSERT_EQ(reports.all().size(), 3U);
  EXPECT_EQ(reports.all()[0].kind, MisuseKind::foreign_free);
  EXPECT_FALSE(reports.all()[0].allocated) << "the other allocator knows nothing of it";
  EXPECT_EQ(reports.all()[1].kind, MisuseKind::size_mismatch);
  EXPECT_NE(reports.all()[1].allocated.site.file, nullptr);
  EXPECT_EQ(reports.all()[2].kind, MisuseKind::foreign_free);
  for (const Misuse& misuse : reports.all()) EXPECT_NE(misuse.here.frames[0], nullptr);
  EXPECT_TRUE(came_from(reports.all()[2].here, g_second_caller));
  checked->deallocate(block);
  EXPECT_EQ(reports.all().size(), 3U);
}

TEST(Check, OneByteWrittenBehindTheEndIsFoundAtTheFree) {
  for (const char* device : {"cpu", "sim:0"}) {
    const auto checked = check(pool(device));
    for (const std::size_t bytes : {1U, 63U, 64U, 100U, 4096U, 100000U}) {
      for (const std::size_t beyond : {0U, 1U, 15U}) {
        const Block block = checked->allocate({.bytes = bytes, .site = Site::here()});
        poke_device(block, bytes + beyond);
        const Reports reports;
        free_first(*checked, block);
        ASSERT_EQ(reports.all().size(), 1U) << device << ' ' << bytes << '+' << beyond;
        EXPECT_EQ(reports.all()[0].kind, MisuseKind::overflow);
        EXPECT_EQ(reports.all()[0].offset, bytes + beyond);
        EXPECT_NE(reports.all()[0].allocated.site.file, nullptr);
        EXPECT_TRUE(came_from(reports.all()[0].freed, g_first_caller));
      }
    }
    EXPECT_EQ(checked->stats().in_use_bytes, 0U) << "the block was freed all the same";
    EXPECT_EQ(checked->audit(), "");
  }
}

// One test for each way out of the quarantine; `leave` makes the block take it.
void expect_use_after_free_found(const char* device, const CheckOptions& options, void (*leave)(std::shared_ptr<CheckAdaptor>& checked)) {
  for (const std::size_t bytes : {1U, 100U, 5000U}) {
    std::shared_ptr<CheckAdaptor> checked = check(limit(pool(device), 1_MiB), options);
    const Block block = checked->allocate({.bytes = bytes, .tag = "late", .site = Site::here()});
    free_first(*checked, block);
    poke_device(block, bytes - 1);
    const Reports reports;
    leave(checked);
    ASSERT_EQ(reports.all().size(), 1U) << device << ' ' << bytes;
    EXPECT_EQ(reports.all()[0].kind, MisuseKind::use_after_free);
    EXPECT_EQ(reports.all()[0].offset, bytes - 1);
    EXPECT_EQ(reports.all()[0].address, block.data);
    EXPECT_EQ(reports.all()[0].tag, Tag("late"));
    EXPECT_NE(reports.all()[0].allocated.site.file, nullptr);
    EXPECT_TRUE(came_from(reports.all()[0].freed, g_first_caller));
    EXPECT_TRUE(checked == nullptr || checked->audit().empty());
  }
}

TEST(Check, AWriteAfterFreeIsFoundWhenTheBlockLeavesTheQuarantine) {
  for (const char* device : {"cpu", "sim:0"}) {
    const auto push_out = [](std::shared_ptr<CheckAdaptor>& checked) {
      for (int i = 0; i < 4; ++i) checked->deallocate(checked->allocate({.bytes = 5000}));
    };
    expect_use_after_free_found(device, {.quarantine_blocks = 4}, push_out);
    expect_use_after_free_found(device, {.quarantine_bytes = 20000 - 1}, push_out);
    expect_use_after_free_found(device, {}, [](std::shared_ptr<CheckAdaptor>& checked) { checked->release_cached(); });
    expect_use_after_free_found(device, {}, [](std::shared_ptr<CheckAdaptor>& checked) { checked->trim(1_MiB); });
    expect_use_after_free_found(device, {}, [](std::shared_ptr<CheckAdaptor>& checked) { checked.reset(); });
    // The limit below has no room for both.
    expect_use_after_free_found(
        device, {}, [](std::shared_ptr<CheckAdaptor>& checked) { checked->deallocate_now(checked->allocate({.bytes = 1_MiB - 64})); });
  }
}

TEST(Check, OfLegalUseNothingIsSaid) {
  for (const char* device : {"cpu", "sim:0"}) {
    for (const CheckOptions& options : {CheckOptions{}, CheckOptions{.quarantine_blocks = 3, .guard_every = 3}, CheckOptions{.zero = true},
                                        CheckOptions{.canary_bytes = 0, .quarantine_bytes = 0}}) {
      const Reports reports;
      const auto checked = check(pool(device), options);
      Random random(seed());
      std::vector<Block> live;
      for (std::uint64_t i = 0; i < scaled(2000, 200); ++i) {
        live.push_back(
            checked->allocate({.bytes = 1 + random.below(i % 10 == 0 ? 100000 : 500), .alignment = std::size_t{1} << random.below(14)}));
        fill_bytes(live.back().data, live.back().device, static_cast<unsigned char>(i), live.back().bytes);
        if (live.size() < 20) continue;
        const std::size_t at = random.below(live.size());
        random.one_in(5) ? checked->deallocate_now(live[at]) : checked->deallocate(live[at]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
        if (random.one_in(100)) checked->release_cached();
        ASSERT_EQ(checked->audit(), "");
      }
      for (const Block& block : live) checked->deallocate(block);
      EXPECT_TRUE(reports.all().empty()) << checked->settings() << ": " << to_string(reports.all()[0].kind);
    }
  }
}

TEST(Check, WhatIsInQuarantineIsCached) {
  const auto checked = check(direct("cpu"), {.canary_bytes = 16});
  const Block block = checked->allocate({.bytes = 1000});
  const Stats live = checked->stats();
  EXPECT_EQ(live.in_use_bytes, 1000U);
  EXPECT_GE(live.cached_bytes, 16U) << "the canary";
  checked->deallocate(block);
  const Stats freed = checked->stats();
  EXPECT_EQ(freed.in_use_bytes, 0U);
  EXPECT_EQ(freed.cached_bytes, live.committed_bytes);
  EXPECT_EQ(freed.frees, 1U);
  checked->release_cached();
  EXPECT_EQ(checked->stats().committed_bytes, 0U);
}

TEST(Check, AQuarantineIsGivenUpBeforeARequestIsRefused) {
  const auto checked = check(limit(pool("cpu"), 1_MiB));
  for (int i = 0; i < 10; ++i) {
    const Block block = checked->allocate({.bytes = 700_KiB});
    checked->deallocate(block);
  }
  EXPECT_EQ(checked->stats().failures, 0U);
  const Block kept = checked->allocate({.bytes = 700_KiB});
  EXPECT_FALSE(checked->try_allocate({.bytes = 700_KiB}));
  EXPECT_EQ(checked->stats().failures, 1U);
  checked->deallocate(kept);
}

TEST(CheckNthFailure, OfOperatorNewChangesNothing) {
  std::uint64_t failures = 0;
  for (std::uint64_t nth = 1;; ++nth) {
    const auto checked = check(direct("cpu"));
    const Reports reports;
    std::vector<Block> live;
    live.reserve(200);
    bool happened = false;
    {
      const FailNthNew failing(nth);
      for (int i = 0; i < 200; ++i) {
        const std::optional<Block> block = checked->try_allocate({.bytes = 10});
        if (block) live.push_back(*block);
      }
      happened = failing.happened();
    }
    failures += 200 - live.size();
    EXPECT_EQ(checked->stats().live_blocks, live.size());
    EXPECT_EQ(checked->audit(), "");
    for (const Block& block : live) checked->deallocate(block);
    EXPECT_TRUE(reports.all().empty());
    checked->release_cached();
    EXPECT_EQ(checked->stats().committed_bytes, 0U) << "nothing is lost";
    if (!happened) break;
  }
  EXPECT_GT(failures, 0U) << "some requests were refused";
}

std::shared_ptr<CheckAdaptor> g_interrupted;
Block g_live;
std::atomic<int> g_served{0};

void use_interrupted(int) {
  if (g_interrupted->try_allocate({.bytes = 8})) ++g_served;
  g_interrupted->deallocate(g_live);
}

TEST(Check, ARequestFromASignalHandlerIsReportedAndRefused) {
  hooked_backend();
  g_interrupted = check(pool("hooked:0"));
  g_live = g_interrupted->allocate({.bytes = 100});
  g_served = 0;
  const Reports reports;
  const auto before = std::signal(SIGUSR1, use_interrupted);
  hooked_backend().at_next_commit([] { std::raise(SIGUSR1); });
  const Block large = g_interrupted->allocate({.bytes = 64_MiB});
  EXPECT_EQ(g_served, 0);
  ASSERT_EQ(reports.all().size(), 2U);
  EXPECT_EQ(reports.all()[0].kind, MisuseKind::reentrancy);
  EXPECT_NE(reports.all()[0].here.frames[0], nullptr);
  EXPECT_EQ(reports.all()[1].kind, MisuseKind::reentrancy);
  EXPECT_EQ(reports.all()[1].address, g_live.data);
  EXPECT_EQ(g_interrupted->stats().live_blocks, 2U) << "what the handler wanted to free lives on";
  use_interrupted(0);  // outside the adaptor nothing is interrupted
  EXPECT_EQ(g_served, 1);
  EXPECT_EQ(reports.all().size(), 2U);
  std::signal(SIGUSR1, before);
  g_interrupted->deallocate(large);
  g_interrupted.reset();
}

TEST(Check, AHandlerOfMisuseMayAllocateFromTheSameAllocator) {
  static std::shared_ptr<CheckAdaptor> checked;
  static int called = 0;
  checked = check(direct("cpu"));
  called = 0;
  const Block block = checked->allocate({.bytes = 100});
  poke(block.data, 100);
  const MisuseHandler before = set_misuse_handler([](const Misuse& misuse) noexcept {
    EXPECT_EQ(misuse.kind, MisuseKind::overflow);
    ++called;
    checked->deallocate(checked->allocate({.bytes = 1000}));
  });
  checked->deallocate(block);
  set_misuse_handler(before);
  EXPECT_EQ(called, 1);
  checked.reset();
}

TEST(Check, ManyThreadsAllocateFreeTrimAndMakeMistakes) {
  const Reports reports;
  const auto checked = check(pool("cpu"), {.quarantine_blocks = 20, .guard_every = 7});
  std::atomic<std::size_t> mistakes{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed() + t);
      for (std::uint64_t i = 0; i < scaled(4000, 100); ++i) {
        const Block block = checked->allocate({.bytes = 1 + random.below(3000)});
        std::memset(block.data, static_cast<int>(t), block.bytes);
        checked->deallocate(block);
        if (random.one_in(20)) {
          checked->deallocate(block);
          ++mistakes;
        }
        if (random.one_in(50)) checked->trim(0);
        if (random.one_in(50)) (void)checked->stats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reports.all().size(), mistakes);
  EXPECT_EQ(reports.count(MisuseKind::double_free), mistakes);
  EXPECT_EQ(checked->stats().live_blocks, 0U);
  EXPECT_EQ(checked->audit(), "");
  did(std::to_string(mistakes) + " double frees among four threads");
}

TEST(Check, OfTwoFreesAtTheSameMomentOneCounts) {
  const Reports reports;
  const auto checked = check(direct("cpu"));
  const std::uint64_t rounds = scaled(500, 20);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const Block block = checked->allocate({.bytes = 100});
    std::thread other([&] { checked->deallocate(block); });
    checked->deallocate(block);
    other.join();
  }
  EXPECT_EQ(reports.all().size(), rounds);
  EXPECT_EQ(checked->stats().frees, rounds);
}

TEST(Check, SaysWhatIsInEffect) {
  EXPECT_EQ(check(direct("cpu"))->settings(), "check (canary 16 B, quarantine 64 MiB in 4096 blocks) over direct on cpu:0");
  EXPECT_EQ(check(direct("cpu"), {.guard_every = 16, .zero = true})->settings(),
            "check (canary 16 B, quarantine 64 MiB in 4096 blocks, guard every 16, zero) over direct on cpu:0");
  EXPECT_EQ(check(direct("sim:0"), {.guard_every = 16})->settings(),
            "check (canary 16 B, quarantine 64 MiB in 4096 blocks) over direct on sim:0");
  EXPECT_ERROR(check(nullptr), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(check(direct("cpu"), {.canary_bytes = 65_KiB}), ArgumentError, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/limit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/random.h"
#include "memory/adaptor.h"
#include "support/everything.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

// Counts what is live below the limit, and can block a request and then refuse it.
class Probe : public Adaptor<Allocator> {
 public:
  Probe() : Adaptor("probe", direct("cpu")) {}

  Status obtain(const Request& request, Block& block) noexcept override {
    if (request.tag == Tag("hold up and refuse")) {
      entered.set_value();
      go_on.get_future().wait();
      return Failure{ErrorCode::out_of_memory, 0, "planned"};
    }
    const std::size_t now = live.fetch_add(request.bytes) + request.bytes;
    std::size_t before = peak.load();
    while (before < now && !peak.compare_exchange_weak(before, now)) {
    }
    return upstream_->obtain(request, block);
  }
  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override {
    live -= block.bytes;
    return upstream_->give_back(block, when, known);
  }

  std::atomic<std::size_t> live{0};
  std::atomic<std::size_t> peak{0};
  std::promise<void> entered;
  std::promise<void> go_on;
};

TEST(Limit, CountsWhatABlockGrowsBy) {
  const auto limited = limit(arena("cpu", 1_MiB), 1000);
  Block block = limited->allocate({.bytes = 600});
  EXPECT_FALSE(limited->try_grow(block, 1001));
  EXPECT_EQ(limited->stats().failures, 0U) << "a block that does not grow is not a refused request";
  EXPECT_TRUE(limited->try_grow(block, 1000));
  EXPECT_FALSE(limited->try_allocate({.bytes = 1}));
  limited->deallocate(block);
  EXPECT_TRUE(limited->try_allocate({.bytes = 1000}));
  EXPECT_EQ(limited->audit(), "");
}

TEST(Limit, IsNeverExceededByConcurrentThreads) {
  const auto probe = std::make_shared<Probe>();
  const auto limited = limit(probe, 10000);
  std::atomic<std::uint64_t> served{0};
  std::atomic<std::uint64_t> refused{0};
  const std::uint64_t rounds = scaled(200000);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      std::vector<Block> mine;
      for (std::uint64_t i = 0; i < rounds; ++i) {
        if (mine.empty() || random.one_in(2)) {
          const auto block = limited->try_allocate({.bytes = 1 + random.below(3000)});
          block ? ++served : ++refused;
          if (block) mine.push_back(*block);
        } else {
          limited->deallocate(mine.back());
          mine.pop_back();
        }
      }
      for (const Block& block : mine) limited->deallocate(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(probe->peak, 10000U);
  EXPECT_GT(served, 0U);
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(limited->audit(), "");
  const auto all = limited->try_allocate({.bytes = 10000});
  EXPECT_TRUE(all.has_value()) << "all of the limit is there again";
  if (all) limited->deallocate(*all);
  did(std::to_string(served) + " served, " + std::to_string(refused) + " refused on 4 threads");
}

TEST(Limit, NeverRefusesWhatFitsBesideTheBlocksThatLive) {
  // Four threads, each never holding more than a quarter: no request may be refused.
  const auto limited = limit(direct("cpu"), 4000);
  std::atomic<std::uint64_t> refused{0};
  const std::uint64_t rounds = scaled(100000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        const auto block = limited->try_allocate({.bytes = 1000});
        if (!block)
          ++refused;
        else
          limited->deallocate(*block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0U);
}

TEST(Limit, ARequestThatIsRefusedBelowMakesNoOtherFail) {
  // One thread claims 80 of 100 and is blocked below the limit; another asks for 60 meanwhile. The first is
  // finally refused, so the second must be served.
  const auto probe = std::make_shared<Probe>();
  const auto limited = limit(probe, 100);
  std::thread first([&] { EXPECT_FALSE(limited->try_allocate({.bytes = 80, .tag = "hold up and refuse"})); });
  probe->entered.get_future().wait();
  std::optional<Block> second;
  std::thread other([&] { second = limited->try_allocate({.bytes = 60}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // lets it reach its wait
  probe->go_on.set_value();
  first.join();
  other.join();
  EXPECT_TRUE(second.has_value());
  if (second) limited->deallocate(*second);
}

TEST(Limit, SaysWhoHoldsWhatAndWhatWouldBeEnough) {
  const auto limited = limit(direct("cpu"), 1000);
  const Block a = limited->allocate({.bytes = 600, .tag = "weights"});
  const Block b = limited->allocate({.bytes = 300, .tag = "kv"});
  try {
    limited->allocate({.bytes = 250, .tag = "activations"});
    FAIL() << "served past the limit";
  } catch (const OutOfMemory& error) {
    const OutOfMemoryReport& report = error.report();
    EXPECT_EQ(report.limit_bytes, 1000U);
    EXPECT_EQ(report.in_use_bytes, 900U);
    EXPECT_EQ(report.would_be_enough_bytes, 150U);
    ASSERT_EQ(report.top_holders.size(), 2U);
    EXPECT_EQ(report.top_holders[0].tag, Tag("weights"));
    EXPECT_EQ(report.top_holders[0].bytes, 600U);
    EXPECT_EQ(report.allocator, "limit(direct)");
    EXPECT_NE(report.to_string().find("weights"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("150 B"), std::string::npos) << error.what();
  }
  limited->deallocate(a);
  limited->deallocate(b);
}

TEST(Limit, SaysSoWhenSomeoneBelowRefused) {
  const auto limited = limit(fail(direct("cpu"), {.nth = 1}), 1000);
  try {
    limited->allocate({.bytes = 10});
    FAIL() << "served";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().refused_by, "the fail adaptor");
    EXPECT_EQ(error.report().limit_bytes, 0U);
  }
  const auto all = limited->try_allocate({.bytes = 1000});
  EXPECT_TRUE(all.has_value()) << "the refused bytes are not counted";
  if (all) limited->deallocate(*all);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "copy/host/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/errors.h"
#include "support/scale.h"

// The worker threads of copies. Tests that need a process of their own are in copy_process_test.cc.
namespace berth::testing {

using namespace internal::copy;
namespace {

// Counts how often each item has run.
class Tally {
 public:
  explicit Tally(std::size_t items) : runs_(items) {}
  void add(std::size_t item) { runs_.at(item).fetch_add(1, std::memory_order_relaxed); }
  bool each_once() const {
    return std::ranges::all_of(runs_, [](const std::atomic<int>& runs) { return runs.load(std::memory_order_relaxed) == 1; });
  }

 private:
  std::vector<std::atomic<int>> runs_;
};

TEST(Workers, RunEveryItemOnce) {
  for (const std::size_t items : {0U, 1U, 2U, 3U, 7U, 64U, 1000U}) {
    for (const int threads : {0, 1, 2, 3, 5, 16}) {
      Tally tally(items);
      run_in_parallel(items, threads, [&](std::size_t item) noexcept { tally.add(item); });
      EXPECT_TRUE(tally.each_once()) << items << " items, " << threads << " threads";
    }
  }
}

TEST(Workers, RunItemsOfOneThreadInOrderOnTheCaller) {
  std::vector<std::size_t> order;
  run_in_parallel(5, 1, [&, caller = std::this_thread::get_id()](std::size_t item) noexcept {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(item);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

// Items that wait for one another: none can return before the requested number of threads is inside.
TEST(Workers, AreAsManyAsWereAskedFor) {
  for (const int threads : {2, 3, 5}) {
    std::atomic<int> inside{0};
    run_in_parallel(static_cast<std::size_t>(threads), threads, [&](std::size_t) noexcept {
      ++inside;
      for (int seen = inside; seen < threads; seen = inside) inside.wait(seen);
      inside.notify_all();
    });
    EXPECT_EQ(inside, threads);
  }
}

TEST(Workers, AreNotMoreThanWereAskedFor) {
  run_in_parallel(8, 8, [](std::size_t) noexcept {});  // starts at least seven workers
  for (int i = 0; i < 50; ++i) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    run_in_parallel(200, 3, [&](std::size_t) noexcept {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    EXPECT_LE(seen.size(), 3U);
  }
}

TEST(Workers, HaveWrittenWhenTheCallReturns) {
  for (std::uint64_t i = 0; i < scaled(20'000, 500); ++i) {
    std::vector<int> written(6, 0);  // not atomic: the return synchronizes
    run_in_parallel(written.size(), 3, [&](std::size_t item) noexcept { written[item] = static_cast<int>(item) + 1; });
    ASSERT_EQ(written, (std::vector<int>{1, 2, 3, 4, 5, 6})) << i;
  }
}

TEST(Workers, ServeSeveralCallersAtOnce) {
  const std::uint64_t rounds = scaled(5'000, 200);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&, caller] {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        Tally tally(1 + i % 37);
        run_in_parallel(1 + i % 37, 1 + (caller + static_cast<int>(i % 5)) % 5, [&](std::size_t item) noexcept { tally.add(item); });
        if (!tally.each_once()) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  did(std::to_string(6 * rounds) + " jobs of six callers");
}

TEST(Workers, MayBeUsedFromInsideAnItem) {
  for (std::uint64_t i = 0; i < scaled(500, 50); ++i) {
    Tally tally(5 * 7 * 3);
    run_in_parallel(5, 4, [&](std::size_t a) noexcept {
      run_in_parallel(
          7, 4, [&](std::size_t b) noexcept { run_in_parallel(3, 2, [&](std::size_t c) noexcept { tally.add((a * 7 + b) * 3 + c); }); });
    });
    ASSERT_TRUE(tally.each_once()) << i;
  }
}

TEST(CopyThreads, AreWhatWasSet) {
  const int before = copy_threads();
  EXPECT_GE(before, 1);
  for (const int threads : {1, 2, 7, kMostCopyThreads}) {
    set_copy_threads(threads);
    EXPECT_EQ(copy_threads(), threads);
  }
  set_copy_threads(before);
}

TEST(CopyThreads, ThatMakeNoSenseAreRefused) {
  const int before = copy_threads();
  for (const int threads : {0, -1, kMostCopyThreads + 1, INT32_MIN, INT32_MAX}) {
    EXPECT_ERROR(set_copy_threads(threads), ArgumentError, ErrorCode::limit_exceeded);
    EXPECT_EQ(copy_threads(), before);
  }
}

}  // namespace
}  // namespace berth::testing

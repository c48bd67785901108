// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "copy/host/host_copy.h"
#include "support/process.h"

// Copies by several threads in processes that fork, end, or cannot start threads, each in a program of its own
// (copy_helper.cc).
namespace berth::testing {
namespace {

Ran copy_helper(const std::string& way, const std::string& environment = "") {
  return run_command(environment + " timeout 120 " BERTH_COPY_HELPER " " + way);
}

void expect_copies_well(const std::string& way, const std::string& environment = "") {
  const Ran ran = copy_helper(way, environment);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(ran.output, "");
}

TEST(CopyProcess, AForkedChildHasWorkersOfItsOwn) { expect_copies_well("fork-after-copies"); }
TEST(CopyProcess, AChildForkedWhileOthersCopyCanCopy) { expect_copies_well("fork-while-copying"); }
TEST(CopyProcess, CopiesWorkWhenNoThreadCanBeStarted) { expect_copies_well("no-threads-to-be-had"); }
TEST(CopyProcess, AProcessMayEndWithWorkersAtWork) { expect_copies_well("leave-workers-behind"); }
TEST(CopyProcess, OneThreadMeansNoWorker) { expect_copies_well("one-thread-starts-none", "BERTH_THREADS=1"); }

TEST(CopyProcess, TheNumberOfThreadsIsThatOfTheVariable) {
  for (const std::string number : {"1", "3", "256"}) EXPECT_EQ(copy_helper("say-threads", "BERTH_THREADS=" + number).output, number + "\n");
  const int by_itself = std::stoi(copy_helper("say-threads").output);
  EXPECT_GE(by_itself, 1);
  EXPECT_LE(by_itself, 16);
  EXPECT_EQ(copy_helper("say-threads", "BERTH_THREADS=''").output, std::to_string(by_itself) + "\n") << "an empty one is none";
  EXPECT_EQ(copy_helper("say-threads-of-one-processor").output, "1\n") << "the processors that this process may use";
}

TEST(CopyProcess, AVariableThatMakesNoSenseIsSaid) {
  for (const std::string number : {"0", "-1", "257", "many", "4x", "99999999999999999999", "' 4'", "1.5"}) {
    const Ran ran = copy_helper("say-threads", "BERTH_THREADS=" + number);
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_EQ(ran.output.find("invalid_argument: "), 0U) << number << ": " << ran.output;
    EXPECT_NE(ran.output.find("BERTH_THREADS="), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("use a number from 1 to 256"), std::string::npos) << ran.output;
  }
}

TEST(CopyProcess, ANumberThatIsSetCountsMoreThanTheVariable) {
  EXPECT_EQ(copy_helper("set-threads", "BERTH_THREADS=7").output, "3\n");
  EXPECT_EQ(copy_helper("set-threads", "BERTH_THREADS=nonsense").output, "3\n");
}

// The stack size of threads in some C libraries. A copy with non-temporal stores may need more, but has 16 MiB
// at least. Here, and not with the other tests of copies, because a sanitizer makes frames larger.
TEST(HostCopy, ATransposeFitsOnAStackOf128KiB) {
  std::vector<float> source(500 * 300, 1.0F);
  std::vector<double> target(source.size());
  std::pair sides(&source, &target);
  const auto run = [](void* both) -> void* {
    const auto& [from, to] = *static_cast<decltype(sides)*>(both);
    constexpr std::int64_t kShape[] = {300, 500};
    constexpr std::int64_t kSource[] = {1, 300};
    constexpr std::int64_t kTarget[] = {500, 1};
    internal::copy::copy_on_host(kShape, {reinterpret_cast<std::byte*>(from->data()), DType::f32, kSource},
                                 {reinterpret_cast<std::byte*>(to->data()), DType::f64, kTarget}, 1);
    return nullptr;
  };
  pthread_attr_t small;
  ASSERT_EQ(pthread_attr_init(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, 128 << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &small, run, &sides), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&small);
  EXPECT_EQ(std::ranges::count(target, 1.0), static_cast<std::ptrdiff_t>(target.size()));
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "berth/record/misuse.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/heap_faults.h"
#include "support/misuse_log.h"

namespace {

using namespace berth;

Misuse example_misuse(MisuseKind kind = MisuseKind::double_free) {
  return {.kind = kind, .allocator = "pool", .device = {}, .address = reinterpret_cast<const void*>(0x1234), .bytes = 4096};
}

// The output of the default handler.
std::string printed(const Misuse& misuse) {
  const MisuseHandler before = set_misuse_handler(nullptr);
  ::testing::internal::CaptureStderr();
  report_misuse(misuse);
  set_misuse_handler(before);
  return ::testing::internal::GetCapturedStderr();
}

void expect_one_line(const std::string& text) {
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_TRUE(text.starts_with("berth: ") && text.ends_with("\n")) << text;
}

TEST(Misuse, ReachesTheHandlerWithItsFacts) {
  static Misuse seen;
  const MisuseHandler before = set_misuse_handler([](const Misuse& misuse) noexcept { seen = misuse; });
  Misuse misuse = example_misuse(MisuseKind::size_mismatch);
  misuse.tag = Tag("weights");
  report_misuse(misuse);
  set_misuse_handler(before);
  EXPECT_EQ(seen.kind, MisuseKind::size_mismatch);
  EXPECT_EQ(seen.allocator, "pool");
  EXPECT_EQ(seen.address, misuse.address);
  EXPECT_EQ(seen.bytes, 4096U);
  EXPECT_EQ(seen.tag, Tag("weights"));
}

TEST(Misuse, ReplacingTheHandlerGivesBackTheOneBefore) {
  const MisuseHandler mine = [](const Misuse&) noexcept {};
  const MisuseHandler other = [](const Misuse&) noexcept { std::abort(); };
  const MisuseHandler before = set_misuse_handler(other);
  EXPECT_EQ(set_misuse_handler(mine), other);
  report_misuse(example_misuse());  // would abort
  EXPECT_EQ(set_misuse_handler(before), mine);
}

TEST(Misuse, IsCountedWhoeverHandlesIt) {
  const std::uint64_t before = misuse_count();
  {
    const berth::testing::MisuseLog log;
    report_misuse(example_misuse());
    report_misuse(example_misuse(MisuseKind::foreign_free));
    EXPECT_EQ(log.reported(), (std::vector{MisuseKind::double_free, MisuseKind::foreign_free}));
  }
  (void)printed(example_misuse());
  EXPECT_EQ(misuse_count(), before + 3);
}

TEST(Misuse, IsCountedFromAllThreads) {
  const MisuseHandler handler = set_misuse_handler([](const Misuse&) noexcept {});
  const std::uint64_t before = misuse_count();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 1000; ++n) report_misuse(example_misuse());
    });
  }
  for (std::thread& thread : threads) thread.join();
  set_misuse_handler(handler);
  EXPECT_EQ(misuse_count(), before + 4000);
}

TEST(Misuse, IsPrintedInOneLineByDefault) {
  const std::string text = printed(example_misuse());
  expect_one_line(text);
  for (const char* piece : {"double_free", "0x1234", "4096", "pool"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << ": " << text;
  EXPECT_EQ(text.find("tag"), std::string::npos) << text;
}

TEST(Misuse, IsPrintedWithItsTag) {
  Misuse misuse = example_misuse(MisuseKind::foreign_free);
  misuse.tag = Tag("kv");
  const std::string text = printed(misuse);
  expect_one_line(text);
  for (const char* piece : {"foreign_free", "tag kv"}) EXPECT_NE(text.find(piece), std::string::npos) << piece << ": " << text;
}

TEST(Misuse, IsPrintedInOneLineWhateverTheTagHolds) {
  Misuse misuse = example_misuse();
  misuse.tag = Tag("two\nlines \x1b[31mred");
  const std::string text = printed(misuse);
  expect_one_line(text);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "an escape would reach the terminal";
}

TEST(Misuse, IsPrintedWithALineForEachSite) {
  Misuse misuse = example_misuse();
  misuse.allocated.site = {"/far/away/decoder\x1b.cc", "grow", 118};
  misuse.freed.frames[0] = reinterpret_cast<const void*>(&printed);
  misuse.freed.frames[1] = reinterpret_cast<const void*>(0x10);
  misuse.here.frames[0] = __builtin_return_address(0);
  const std::string text = printed(misuse);
  EXPECT_EQ(std::ranges::count(text, '\n'), 4) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "an escape would reach the terminal";
  for (const char* piece : {"\nberth:   allocated at decoder?.cc:118 (grow)\n", "\nberth:   first freed at test_base+0x", " < 0x10\n",
                            "\nberth:   called at test_base+0x"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << ": " << text;
}

TEST(Misuse, FoundLateSaysWhichByteWasWritten) {
  Misuse misuse = example_misuse(MisuseKind::overflow);
  misuse.offset = 4099;
  const std::string text = printed(misuse);
  expect_one_line(text);
  EXPECT_NE(text.find("overflow of 0x1234 (4096 bytes)"), std::string::npos) << text;
  EXPECT_NE(text.find("byte 4099 was written"), std::string::npos) << text;
  EXPECT_EQ(text.find("nothing was changed"), std::string::npos) << text;
}

TEST(Misuse, EveryKindHasItsOwnName) {
  EXPECT_EQ(to_string(MisuseKind::double_free), "double_free");
  EXPECT_EQ(to_string(MisuseKind::foreign_free), "foreign_free");
  EXPECT_EQ(to_string(MisuseKind::size_mismatch), "size_mismatch");
  EXPECT_EQ(to_string(MisuseKind::overflow), "overflow");
  EXPECT_EQ(to_string(MisuseKind::use_after_free), "use_after_free");
  EXPECT_EQ(to_string(MisuseKind::reentrancy), "reentrancy");
}

TEST(MisuseDeathTest, AbortsAfterTheReportWhenAskedTo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("BERTH_CHECK", "abort", 1);
        report_misuse(example_misuse());
        _exit(0);
      },
      ::testing::KilledBySignal(SIGABRT), "berth: double_free");
  EXPECT_EXIT(
      {
        setenv("BERTH_CHECK", "guard=16,abort", 1);
        report_misuse(example_misuse());
        _exit(0);
      },
      ::testing::KilledBySignal(SIGABRT), "berth: double_free");
  EXPECT_EXIT(
      {
        setenv("BERTH_CHECK", "count", 1);
        report_misuse(example_misuse());
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "berth: double_free");
}

// The first use of berth in a program may be this report, while the heap is exhausted.
TEST(MisuseDeathTest, IsPrintedWithoutTheHeap) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const berth::testing::FailNthNew fail(1);
        report_misuse(example_misuse());
        _exit(fail.happened() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "berth: double_free");
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "memory/check/reports.h"
#include "os/inject.h"
#include "os/memory/memory.h"
#include "support/everything.h"

// Guarded blocks, which have pages of their own.
namespace berth::testing {

using namespace internal;
namespace {

TEST(CheckGuard, BlocksEndAtTheGuardPageAndKeepTheirAlignment) {
  const auto checked = check(direct("cpu"), {.guard_every = 1});
  const std::size_t page = os::page_bytes();
  for (std::size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    const Block block = checked->allocate({.bytes = 3 * alignment, .alignment = alignment});
    const auto begin = reinterpret_cast<std::uintptr_t>(block.data);
    EXPECT_EQ(begin % alignment, 0U);
    EXPECT_EQ((begin + block.bytes) % page, 0U) << alignment;
    std::memset(block.data, 1, block.bytes);
    checked->deallocate(block);
  }
  EXPECT_EQ(checked->guarded(), 17U);
  EXPECT_EQ(checked->unguarded(), 0U);
  checked->release_cached();
  EXPECT_EQ(checked->stats().committed_bytes, 0U);
}

TEST(CheckGuard, GuardsEveryNthBlock) {
  const auto checked = check(direct("cpu"), {.guard_every = 4});
  for (int i = 0; i < 12; ++i) checked->deallocate(checked->allocate({.bytes = 64}));
  EXPECT_EQ(checked->guarded(), 3U);
  const auto on_device = check(direct("sim:0"), {.guard_every = 1});
  on_device->deallocate(on_device->allocate({.bytes = 64}));
  EXPECT_EQ(on_device->guarded() + on_device->unguarded(), 0U);
}

TEST(CheckGuard, TheSlackOfAlignmentIsACanary) {
  const auto checked = check(direct("cpu"), {.guard_every = 1});
  const Block block = checked->allocate({.bytes = 65});
  poke(block.data, 100);
  const Reports reports;
  checked->deallocate(block);
  ASSERT_EQ(reports.all().size(), 1U);
  EXPECT_EQ(reports.all()[0].kind, MisuseKind::overflow);
  EXPECT_EQ(reports.all()[0].offset, 100U);
}

TEST(CheckGuardDeathTest, AWriteBehindTheEndFaultsWhereItHappens) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto overflow = [](std::size_t offset) {
    const auto checked = check(direct("cpu"), {.guard_every = 1});
    const Block block = checked->allocate({.bytes = 128});
    poke(block.data, offset);
    std::fprintf(stderr, "still here\n");
    std::_Exit(0);
  };
  EXPECT_EXIT(overflow(127), ::testing::ExitedWithCode(0), "still here");
  EXPECT_EXIT(
      overflow(128), [](int status) { return !(WIFEXITED(status) && WEXITSTATUS(status) == 0); }, "");
}

TEST(CheckGuardDeathTest, AUseAfterFreeFaultsWhereItHappens) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto checked = check(direct("cpu"), {.guard_every = 1});
        const Block block = checked->allocate({.bytes = 128});
        checked->deallocate(block);
        poke(block.data, 5);
        std::_Exit(0);
      },
      [](int status) { return !(WIFEXITED(status) && WEXITSTATUS(status) == 0); }, "");
}

// Makes one system call fail while it lives.
class Refuse {
 public:
  explicit Refuse(std::string_view call) {
    name() = call;
    os::set_injector([](std::string_view made) noexcept { return made == name() ? ENOMEM : 0; });
  }
  ~Refuse() { os::set_injector(nullptr); }
  Refuse(const Refuse&) = delete;
  Refuse& operator=(const Refuse&) = delete;

 private:
  static std::string_view& name() {
    static std::string_view one;
    return one;
  }
};

TEST(CheckGuard, WithoutMappingsBlocksAreUnguardedAndCounted) {
  const auto checked = check(direct("cpu"), {.guard_every = 1});
  const Reports reports;
  for (const char* call : {"mmap", "mprotect"}) {
    const std::uint64_t before = checked->unguarded();
    const Refuse refuse(call);
    const Block block = checked->allocate({.bytes = 100});
    std::memset(block.data, 1, 100);
    EXPECT_EQ(checked->unguarded(), before + 1) << call;
    poke(block.data, 100);
    checked->deallocate(block);
  }
  EXPECT_EQ(reports.count(MisuseKind::overflow), 2U) << "the canary is still there";
  EXPECT_EQ(checked->guarded(), 0U);
  {
    const Block block = checked->allocate({.bytes = 100});
    const Refuse refuse("mmap_fixed");  // the pages of a freed block stay readable, and hold the poison
    checked->deallocate(block);
    poke(block.data, 3);
    checked->release_cached();
  }
  EXPECT_EQ(reports.count(MisuseKind::use_after_free), 1U);
  EXPECT_EQ(checked->stats().committed_bytes, 0U);
  EXPECT_EQ(checked->audit(), "");
}

TEST(CheckGuard, NeverTakesAllTheMappingsOfTheProcess) {
  const auto checked = check(direct("cpu"), {.guard_every = 1});
  std::vector<Block> live;
  for (int i = 0; i < 8200; ++i) live.push_back(checked->allocate({.bytes = 1}));
  EXPECT_EQ(checked->guarded(), 8192U);
  EXPECT_EQ(checked->unguarded(), 8U);
  for (const Block& block : live) checked->deallocate(block);
  checked->release_cached();
  checked->deallocate(checked->allocate({.bytes = 1}));
  EXPECT_EQ(checked->guarded(), 8193U) << "those that are gone make room";
}

}  // namespace
}  // namespace berth::testing

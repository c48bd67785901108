// SPDX-License-Identifier: Apache-2.0
#include "os/process/stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace {

using namespace berth;
using namespace berth::internal;

struct Seen {
  std::array<const void*, 8> frames{};
  std::size_t count = 0;
  const void* caller = nullptr;
};

[[gnu::noinline]] Seen look(std::size_t skip, std::size_t most) {
  Seen seen;
  seen.count = os::capture_stack(std::span(seen.frames).first(most), skip);
  seen.caller = __builtin_return_address(0);
  return seen;
}

TEST(Stack, IsCapturedFromTheInside) {
  const Seen whole = look(0, 8);
  ASSERT_GE(whole.count, 2U);
  EXPECT_EQ(whole.frames[1], whole.caller) << "first a place in look itself, then whoever called it";
  const Seen skipped = look(1, 8);
  ASSERT_GE(skipped.count, 1U);
  EXPECT_EQ(skipped.frames[0], skipped.caller);
}

TEST(Stack, IsCutWhereTheRoomEnds) {
  const Seen two = look(0, 2);
  EXPECT_EQ(two.count, 2U);
  EXPECT_EQ(std::ranges::count(two.frames, nullptr), 6);
  EXPECT_EQ(look(0, 0).count, 0U);
  EXPECT_EQ(look(100000, 8).count, 0U);
}

TEST(Stack, AnAddressInCodeHasTheNameOfItsModule) {
  const os::CodeName here = os::name_of_caller(look(0, 1).frames[0]);
  EXPECT_EQ(here.module, "test_base");
  EXPECT_GT(here.offset, 0U);
  EXPECT_LT(here.offset, std::size_t{1} << 30) << "it is an offset and no address";
  int local = 0;
  EXPECT_TRUE(os::name_of_caller(&local).module.empty());
  EXPECT_TRUE(os::name_of_caller(reinterpret_cast<const void*>(0x10)).module.empty());
}

}  // namespace

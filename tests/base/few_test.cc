// SPDX-License-Identifier: Apache-2.0
#include "base/few.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "support/heap_faults.h"

namespace berth::testing {

using namespace internal;
namespace {

std::vector<int> values(const Few<int, 2>& list) { return {list.all().begin(), list.all().end()}; }

TEST(Few, KeepsTheFirstOnesWithoutAHeap) {
  int news = 0;
  Few<int, 2> list;
  EXPECT_TRUE(list.empty());
  {
    const AtNew counted([&] { ++news; });
    list.push_back(1);
    list.push_back(2);
  }
  EXPECT_EQ(news, 0);
  EXPECT_EQ(values(list), (std::vector<int>{1, 2}));
}

TEST(Few, KeepsAllInARow) {
  Few<int, 2> list;
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) {
    list.push_back(i);
    expected.push_back(i);
    ASSERT_EQ(values(list), expected);
    ASSERT_EQ(list.size(), expected.size());
  }
  list.all()[1] = -1;
  list.all()[99] = -2;
  EXPECT_EQ(list.all()[1], -1);
  EXPECT_EQ(*std::ranges::min_element(list.all()), -2);
}

TEST(Few, IsAValue) {
  for (const int count : {1, 2, 3, 9}) {
    Few<int, 2> list;
    for (int i = 0; i < count; ++i) list.push_back(i);
    const std::vector<int> expected = values(list);
    Few<int, 2> copy = list;
    list.all()[0] = 7;
    EXPECT_EQ(values(copy), expected);
    const Few<int, 2> moved = std::move(copy);
    EXPECT_EQ(values(moved), expected);
  }
}

TEST(Few, WithoutHeapIsAsItWas) {
  for (const std::uint64_t nth : {1U, 2U}) {
    Few<int, 2> list;
    list.push_back(1);
    list.push_back(2);
    {
      const FailNthNew failing(nth);
      EXPECT_THROW(list.push_back(3), std::bad_alloc);
    }
    EXPECT_EQ(values(list), (std::vector<int>{1, 2}));
    list.push_back(3);
    EXPECT_EQ(values(list), (std::vector<int>{1, 2, 3}));
  }
}

}  // namespace
}  // namespace berth::testing

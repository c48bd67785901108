// SPDX-License-Identifier: Apache-2.0
#include "memory/live_table.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "support/heap_faults.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

void* at(std::uint64_t number) { return reinterpret_cast<void*>(number * 64); }

TEST(LiveTable, MatchesAMapOverRandomInsertsAndErases) {
  Random random(seed());
  LiveTable table;
  std::map<void*, std::size_t> model;
  const std::uint64_t steps = scaled(1'000'000);
  for (std::uint64_t i = 0; i < steps; ++i) {
    void* const key = at(1 + random.below(400));
    LiveEntry* const found = table.find(key);
    const auto known = model.find(key);
    ASSERT_EQ(found != nullptr, known != model.end()) << "step " << i;
    if (found != nullptr) {
      ASSERT_EQ(found->bytes, known->second);
      table.erase(found);
      model.erase(known);
    } else if (random.below(400) > model.size() / 2) {
      LiveEntry* const entry = table.insert(key);
      ASSERT_NE(entry, nullptr);
      entry->bytes = i;
      model[key] = i;
    }
    ASSERT_EQ(table.size(), model.size());
  }
  std::size_t visited = 0;
  table.for_each([&](const LiveEntry& entry) {
    ++visited;
    EXPECT_EQ(model.at(entry.data), entry.bytes);
  });
  EXPECT_EQ(visited, model.size());
  did(std::to_string(steps) + " steps");
}

TEST(LiveTable, ALackOfHeapLeavesItAsItWas) {
  LiveTable table;
  for (std::uint64_t i = 1; i <= 32; ++i) ASSERT_NE(table.insert(at(i)), nullptr);
  const FailNthNew fault(1);
  EXPECT_EQ(table.insert(at(1000)), nullptr) << "the 33rd entry needs a larger table";
  EXPECT_TRUE(fault.happened());
  EXPECT_EQ(table.size(), 32U);
  for (std::uint64_t i = 1; i <= 32; ++i) EXPECT_NE(table.find(at(i)), nullptr);
}

}  // namespace
}  // namespace berth::testing

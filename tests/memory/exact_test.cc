// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/exact.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/everything.h"

// How `exact` differs from `rounded`; the engine that both use is tested with the latter.
namespace berth::testing {
namespace {

Block allocated_and_freed(const std::shared_ptr<Allocator>& memory, std::size_t bytes) {
  const Block block = memory->allocate({.bytes = bytes});
  memory->deallocate(block);
  return block;
}

TEST(Exact, ReusesABlockForTheSameSizeInUnitsOfTheDevicesAlignment) {
  const auto memory = exact("cpu");
  const Block first = allocated_and_freed(memory, 1000);
  EXPECT_EQ(memory->stats().committed_bytes, 1024U) << "16 times 64";
  EXPECT_EQ(allocated_and_freed(memory, 961).data, first.data);
  EXPECT_EQ(allocated_and_freed(memory, 1024).data, first.data);
  EXPECT_EQ(memory->stats().commits, 1U);
  EXPECT_NE(allocated_and_freed(memory, 960).data, first.data) << "one unit less is another size";
  EXPECT_NE(allocated_and_freed(memory, 1025).data, first.data);
  EXPECT_EQ(memory->stats().commits, 3U);
}

TEST(Exact, HasAGranularityThatCanBeSet) {
  const auto memory = exact("cpu", {.granularity_bytes = 4096});
  const Block first = allocated_and_freed(memory, 1);
  EXPECT_EQ(allocated_and_freed(memory, 4096).data, first.data);
  EXPECT_EQ(memory->stats().committed_bytes, 4096U);
  const auto bytes = exact("cpu", {.granularity_bytes = 1});
  allocated_and_freed(bytes, 1001);
  allocated_and_freed(bytes, 1002);
  EXPECT_EQ(bytes->stats().committed_bytes, 2003U);
}

TEST(Exact, CountsWholePagesWhereABlockHasPagesOfItsOwn) {
  const Device device = make_sim({.page_bytes = 64_KiB, .background = false});
  const auto memory = exact(device);
  const Block small = allocated_and_freed(memory, 512);
  EXPECT_EQ(memory->stats().committed_bytes, 64_KiB);
  EXPECT_EQ(sim_control(device).committed_bytes(), 64_KiB);
  EXPECT_NE(allocated_and_freed(memory, 513).data, small.data) << "though a page would hold it";
}

TEST(Exact, RefusesOptionsThatMakeNoSense) {
  for (const ExactOptions& bad : {ExactOptions{.granularity_bytes = 3}, ExactOptions{.granularity_bytes = SIZE_MAX},
                                  ExactOptions{.limit_bytes = 0}, ExactOptions{.granularity_bytes = 4096, .limit_bytes = 4095}})
    EXPECT_ERROR(exact("cpu", bad), ArgumentError, ErrorCode::invalid_argument);
  for (const char* bad : {"exact:64", "exact:least=64", "exact:granularity=48", "exact:granularity=0", "exact:limit=1"})
    EXPECT_ERROR(make_allocator(bad, "cpu"), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Exact, PrintsItsSettings) {
  EXPECT_EQ(make_allocator("exact", "cpu")->settings(), "exact on cpu:0, sizes in multiples of 64 B");
  EXPECT_EQ(make_allocator("exact:limit=1GiB,granularity=4KiB", "cpu")->settings(),
            "exact on cpu:0, sizes in multiples of 4 KiB, at most 1 GiB");
}

TEST(Exact, SizesThatNeverComeAgainGoBackWhenTheDeviceIsFull) {
  const Device device = make_sim({.capacity_bytes = 1_MiB, .page_bytes = 4096, .background = false});
  const auto memory = exact(device);
  for (std::size_t bytes = 1; bytes < 400'000; bytes += 997) allocated_and_freed(memory, bytes);
  EXPECT_EQ(memory->stats().failures, 0U);
  EXPECT_GT(memory->stats().decommits, 0U);
  EXPECT_EQ(memory->stats().committed_bytes, sim_control(device).committed_bytes());
  EXPECT_EQ(memory->audit(), "");
}

}  // namespace
}  // namespace berth::testing

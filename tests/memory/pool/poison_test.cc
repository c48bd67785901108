// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "base/poison.h"
#include "berth/base/units.h"
#include "berth/memory/pool.h"

// What the address sanitizer knows of a pool, in builds that have it.
namespace berth::testing {
namespace {

class PoolPoisonDeathTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (!kAddressSanitizer) GTEST_SKIP() << "not a build with the address sanitizer";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

volatile unsigned char* bytes_of(const Block& block) { return static_cast<volatile unsigned char*>(block.data); }

TEST_P(PoolPoisonDeathTest, AFreedBlockIsNotTouched) {
  const auto memory = pool("cpu");
  const Block block = memory->allocate({.bytes = GetParam()});
  bytes_of(block)[GetParam() - 1] = 1;
  memory->deallocate(block);
  EXPECT_DEATH(bytes_of(block)[0] = 1, "use-after-poison");
}

TEST_P(PoolPoisonDeathTest, NorWhatFollowsALiveOne) {
  const auto memory = pool("cpu");
  const Block block = memory->allocate({.bytes = GetParam()});
  EXPECT_DEATH(bytes_of(block)[GetParam()] = 1, "use-after-poison");
  memory->deallocate(block);
}

// A block handed out again, or grown, may be touched to its end; and so may the addresses when the pool is gone.
TEST_P(PoolPoisonDeathTest, OthersAre) {
  void* address = nullptr;
  {
    const auto memory = pool("cpu");
    memory->deallocate(memory->allocate({.bytes = GetParam()}));
    Block block = memory->allocate({.bytes = GetParam()});
    address = block.data;
    for (std::size_t i = 0; i < GetParam(); ++i) bytes_of(block)[i] = 1;
    if (memory->try_grow(block, GetParam() + 8)) bytes_of(block)[GetParam() + 7] = 1;
    memory->deallocate(block);
  }
  const auto again = pool("cpu");
  const Block block = again->allocate({.bytes = 64_MiB});
  for (std::size_t i = 0; i < block.bytes; i += 4096) bytes_of(block)[i] = 1;
  again->deallocate(block);
  EXPECT_NE(address, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Of, PoolPoisonDeathTest, ::testing::Values(1, 65, 1000, 130'000, 1'000'001),
                         [](const auto& param) { return std::to_string(param.param) + "Bytes"; });

}  // namespace
}  // namespace berth::testing

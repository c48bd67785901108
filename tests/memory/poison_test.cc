// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "berth/berth.h"

// What the address sanitizer knows of the strategies that cache. Only in builds that have it.
namespace berth::testing {
namespace {

class PoisonDeathTest : public ::testing::TestWithParam<std::tuple<std::string, std::size_t>> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static std::shared_ptr<Allocator> make() { return make_allocator(std::get<0>(GetParam()), "cpu"); }
  static std::size_t bytes() { return std::get<1>(GetParam()); }
};

volatile unsigned char* bytes_of(const Block& block) { return static_cast<volatile unsigned char*>(block.data); }

TEST_P(PoisonDeathTest, AFreedBlockIsNotTouched) {
  const auto memory = make();
  const Block block = memory->allocate({.bytes = bytes()});
  bytes_of(block)[bytes() - 1] = 1;
  memory->deallocate(block);
  EXPECT_DEATH(bytes_of(block)[0] = 1, "use-after-poison");
}

TEST_P(PoisonDeathTest, NorWhatFollowsALiveOne) {
  const auto memory = make();
  const Block block = memory->allocate({.bytes = bytes()});
  EXPECT_DEATH(bytes_of(block)[bytes()] = 1, "use-after-poison");
  memory->deallocate(block);
}

// A block handed out again, or grown, may be touched to its end; and so may the addresses when the pool is gone.
TEST_P(PoisonDeathTest, OthersAre) {
  void* address = nullptr;
  {
    const auto memory = make();
    memory->deallocate(memory->allocate({.bytes = bytes()}));
    Block block = memory->allocate({.bytes = bytes()});
    address = block.data;
    for (std::size_t i = 0; i < bytes(); ++i) bytes_of(block)[i] = 1;
    if (memory->try_grow(block, bytes() + 8)) bytes_of(block)[bytes() + 7] = 1;
    memory->deallocate(block);
  }
  const auto again = make();
  const Block block = again->allocate({.bytes = 64_MiB});
  for (std::size_t i = 0; i < block.bytes; i += 4096) bytes_of(block)[i] = 1;
  again->deallocate(block);
  EXPECT_NE(address, nullptr);
}

// Streams work on blocks that were freed under them, be it on the stream or after a use there.
TEST_P(PoisonDeathTest, NorIsTheWorkOfStreamsInTheWay) {
  const auto memory = make();
  const Stream stream = make_stream("cpu");
  std::atomic<bool> go = false;
  stream.enqueue([&] {
    while (!go) std::this_thread::yield();
  });
  const Block used = memory->allocate({.bytes = bytes()});
  memory->used_on(used, stream);
  const Block own = memory->allocate({.bytes = bytes(), .stream = stream});
  const std::byte value{7};
  for (const Block& block : {used, own}) ASSERT_TRUE(backend("cpu").fill(block.data, bytes(), {&value, 1}, stream).ok());
  memory->deallocate(used);
  memory->deallocate(own);
  go = true;
  stream.synchronize();
}

INSTANTIATE_TEST_SUITE_P(Of, PoisonDeathTest,
                         ::testing::Combine(::testing::Values("pool", "rounded", "exact"),
                                            ::testing::Values(1, 65, 1000, 130'000, 1'000'001)),
                         [](const auto& param) { return std::get<0>(param.param) + std::to_string(std::get<1>(param.param)) + "Bytes"; });

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "support/everything.h"

// What the caching strategies tell the address sanitizer. Only in builds that have it.
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

// A block that is reused, or grown, may be accessed to its end.
TEST_P(PoisonDeathTest, OthersAre) {
  const auto memory = make();
  memory->deallocate(memory->allocate({.bytes = bytes()}));
  Block block = memory->allocate({.bytes = bytes()});
  for (std::size_t i = 0; i < bytes(); ++i) bytes_of(block)[i] = 1;
  if (memory->try_grow(block, bytes() + 8)) bytes_of(block)[bytes() + 7] = 1;
  memory->deallocate(block);
}

// The addresses of a destroyed pool may be accessed by their next owner. They are mapped by a direct system
// call, because the sanitizer intercepts mmap; the dynamic linker and the C library's own threads bypass it in
// the same way.
TEST(Poison, APoolThatIsGoneLeavesItsAddressesToOthers) {
  std::byte* page = nullptr;
  {
    const auto memory = pool("cpu");
    const Block block = memory->allocate({.bytes = 1_MiB});
    page = static_cast<std::byte*>(block.data);  // a large block begins at a page boundary
    memory->deallocate(block);
  }
  const auto mapped = static_cast<std::uintptr_t>(
      syscall(SYS_mmap, page, 64_KiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
  ASSERT_EQ(mapped, reinterpret_cast<std::uintptr_t>(page));
  static_cast<volatile std::byte*>(page)[100] = std::byte{1};
  syscall(SYS_munmap, page, 64_KiB);
}

// Streams work on blocks that were freed before the work ran, with the free in the stream or after used_on.
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

// SPDX-License-Identifier: Apache-2.0
// Blocks that are asked for zeroed: zero whatever was there before, and untouched where the system would fill them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "os/memory/clear.h"
#include "os/system.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/failing_calls.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

bool is_zero(const Block& block) {
  std::vector<unsigned char> bytes(block.bytes, 1);
  copy_bytes(bytes.data(), "cpu", block.data, block.device, block.bytes);
  return bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;  // fast without optimisation
}

// Blocks of random sizes come and go; each is written all over, some are asked for zeroed.
void churn(const std::shared_ptr<Allocator>& memory, std::uint64_t seed, std::size_t steps) {
  Random random(seed);
  std::list<Block> live;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t bytes = 1 + random.below(random.below(4) == 0 ? 3'000'000 : 5'000);
    const bool zeroed = random.below(2) == 0;
    const Block block = memory->allocate({.bytes = bytes, .alignment = std::size_t{1} << random.below(9), .zeroed = zeroed});
    ASSERT_TRUE(!zeroed || is_zero(block)) << memory->settings() << ", seed " << seed << ", step " << step;
    fill_bytes(block.data, block.device, 0xa5, block.bytes);
    live.push_back(block);
    if (live.size() > 12) {
      memory->deallocate(live.front());
      live.pop_front();
    }
    if (random.below(40) == 0) memory->release_cached();
  }
  for (const Block& block : live) memory->deallocate(block);
  EXPECT_EQ(memory->audit(), "");
}

TEST(Zeroed, IsZeroAfterWhateverWasThere) {
  const std::uint64_t steps = scaled(500, 40);
  for (const char* device : {"cpu", "pinned", "sim:0", "shared"}) {
    const std::vector<std::shared_ptr<Allocator>> all = {pool(device),    pool(device, {.decay = std::chrono::milliseconds(0)}),
                                                         rounded(device), exact(device),
                                                         direct(device),  limit(pool(device), 1_GiB)};
    for (const auto& memory : all) churn(memory, 7, steps);
  }
  churn(check(pool("cpu")), 8, steps);
  churn(arena("cpu", 1_GiB), 9, steps);  // takes nothing back while any block lives
  did(text::join(steps, " blocks of each of 26 allocators"));
}

// Pages that were never written are left to the system: nothing of a large block is in memory until it is written.
TEST(Zeroed, TouchesNoFreshPage) {
  constexpr std::size_t kBytes = 256_MiB;
  for (const char* device : {"cpu", "shared"}) {
    for (const auto& memory : {pool(device), direct(device)}) {
      const Block block = memory->allocate({.bytes = kBytes, .zeroed = true});
      const auto resident = os::resident_bytes(block.data, kBytes);
      ASSERT_TRUE(resident.has_value());
      EXPECT_LE(*resident, 4_MiB) << memory->settings();
      static_cast<unsigned char*>(block.data)[kBytes / 2] = 1;
      EXPECT_EQ(static_cast<unsigned char*>(block.data)[kBytes / 2 + 1], 0);
      memory->deallocate(block);
    }
  }
  const Storage made = zeros({static_cast<std::int64_t>(kBytes)}, DType::u8, pool("cpu"));
  EXPECT_LE(os::resident_bytes(made.data_ptr(), kBytes).value_or(0), 4_MiB);
}

// Only the pages that were written are written again.
TEST(Zeroed, WritesOnlyWhatWasWritten) {
  constexpr std::size_t kBytes = 64_MiB;
  for (const char* device : {"cpu", "shared"}) {
    const auto memory = pool(device);
    Block block = memory->allocate({.bytes = kBytes});
    void* const first = block.data;
    std::memset(static_cast<std::byte*>(first) + 10_MiB, 0xff, 100'000);
    memory->deallocate(block);
    block = memory->allocate({.bytes = kBytes, .zeroed = true});
    EXPECT_EQ(block.data, first) << "the same memory";
    EXPECT_LE(os::resident_bytes(first, kBytes).value_or(0), 8_MiB) << device;
    EXPECT_TRUE(is_zero(block)) << device;
    memory->deallocate(block);
  }
}

TEST(Zeroed, IsInTheOrderOfItsStream) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device);
  const Stream stream = make_stream(device);
  const Block dirty = memory->allocate({.bytes = 1_MiB, .stream = stream});
  fill_bytes(dirty.data, device, 0xff, dirty.bytes, {.stream = stream, .non_blocking = true});
  memory->deallocate(dirty);
  const Block block = memory->allocate({.bytes = 1_MiB, .stream = stream, .zeroed = true});
  EXPECT_EQ(block.data, dirty.data) << "whose fill is still to run";
  stream.synchronize();
  EXPECT_TRUE(is_zero(block));
  memory->deallocate(block);
}

TEST(Zeroed, IsAnOptionOfEveryCreation) {
  const auto is_all_zero = [](const Storage& x) { return equal(x, full(x.shape(), 0, x.dtype(), x.device())); };
  for (const char* device : {"cpu", "sim:0", "shared"}) {
    const auto memory = pool(device);
    for (int round = 0; round < 3; ++round) {
      const Storage x = empty({1000, 30}, DType::f32, memory, {.zeroed = true});
      EXPECT_TRUE(is_all_zero(x)) << device;
      x.fill(7);
    }
    EXPECT_TRUE(is_all_zero(*try_empty({300}, DType::i64, memory, {.zeroed = true})));
    const Buffer buffer = make_buffer(5000, memory, {.zeroed = true});
    EXPECT_TRUE(is_all_zero(Storage(buffer, DType::u8, {5000}, {1})));
  }
  EXPECT_TRUE(is_all_zero(new_shared(100'000, {.zeroed = true}).storage));
  EXPECT_EQ(pool("cpu")->allocate({.bytes = 0, .zeroed = true}).data, nullptr);
}

TEST(Zeroed, FreesTheBlockThatTheDeviceDoesNotFill) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device);
  sim_control(device).fail_after(SimOperation::fill, 1, ErrorCode::device_error);
  EXPECT_ERROR(memory->allocate({.bytes = 1000, .zeroed = true}), DeviceError, ErrorCode::device_error);
  sim_control(device).fail_after(SimOperation::fill, 1, ErrorCode::device_error);
  EXPECT_ERROR(memory->try_allocate({.bytes = 1000, .zeroed = true}), DeviceError, ErrorCode::device_error);
  EXPECT_EQ(memory->stats().live_blocks, 0U);
  memory->deallocate(memory->allocate({.bytes = 1000, .zeroed = true}));
}

// Where the kernel does not say what is fresh, all is written.
TEST(Zeroed, AsksTheKernelAndDoesWithout) {
  const auto cpu = pool("cpu");
  const auto shared = pool("shared");
  for (const auto& [call, memory] : {std::pair("pagemap", cpu), std::pair("pread", cpu), std::pair("lseek", shared)}) {
    const Block dirty = memory->allocate({.bytes = 9_MiB});
    std::memset(dirty.data, 0xff, dirty.bytes);
    memory->deallocate(dirty);
    for (const int let_through : {0, 1}) {
      const RefusedCall refused(call, EACCES, let_through);
      const Block block = memory->allocate({.bytes = 9_MiB, .zeroed = true});
      EXPECT_TRUE(is_zero(block)) << call;
      std::memset(block.data, 0xff, block.bytes);
      memory->deallocate(block);
    }
  }
}

// Ranges that begin and end anywhere, over pages that were written in part.
TEST(Zeroed, LeavesItsNeighboursAlone) {
  constexpr std::size_t kBytes = 2_MiB;
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    (void)madvise(mapped, kBytes, MADV_NOHUGEPAGE);  // so that pages are written one by one
    auto* const bytes = static_cast<unsigned char*>(mapped);
    std::vector<unsigned char> expected(kBytes);
    for (std::size_t page = 0; page < kBytes; page += 4096)
      if (random.below(3) == 0) std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(page), 4096, static_cast<unsigned char>(0xff));
    for (std::size_t page = 0; page < kBytes; page += 4096)  // those that stay zero are not touched
      if (expected[page] != 0) std::memcpy(bytes + page, expected.data() + page, 4096);
    const std::size_t begin = random.below(kBytes / 2);
    const std::size_t end = begin + random.below(kBytes - begin + 1);
    os::clear(bytes + begin, end - begin);
    std::memset(expected.data() + begin, 0, end - begin);
    ASSERT_EQ(std::memcmp(bytes, expected.data(), kBytes), 0) << begin << " to " << end;
    munmap(mapped, kBytes);
  }
}

}  // namespace
}  // namespace berth::testing

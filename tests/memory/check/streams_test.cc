// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "memory/check/reports.h"
#include "support/errors.h"
#include "support/everything.h"

// When the check adaptor may write to memory and read it, and that it clears the blocks it hands out.
namespace berth::testing {
namespace {

TEST(Check, HandsOutClearedBlocksWhenAskedTo) {
  for (const char* device : {"cpu", "sim:0"}) {
    for (const bool with_stream : {false, true}) {
      const auto checked = check(pool(device), {.quarantine_blocks = 0, .zero = true});
      const Stream stream = with_stream ? make_stream(device) : Stream();
      for (int i = 0; i < 20; ++i) {
        const Block block = checked->allocate({.bytes = 1000, .stream = stream});
        std::vector<unsigned char> seen(1000, 1);
        if (with_stream) stream.synchronize();
        copy_bytes(seen.data(), "cpu", block.data, block.device, 1000);
        ASSERT_EQ(std::ranges::count(seen, 0), 1000) << device;
        fill_bytes(block.data, block.device, 0xaa, block.bytes);
        checked->deallocate(block);
      }
    }
  }
}

TEST(Check, ClearsInTheOrderOfTheStream) {
  const auto checked = check(pool("cpu"), {.quarantine_blocks = 0, .zero = true});
  const Stream stream = make_stream("cpu");
  const Block secret = checked->allocate({.bytes = 1000, .stream = stream});
  std::atomic<bool> go{false};
  stream.enqueue([&] {
    while (!go) std::this_thread::yield();
    std::memset(secret.data, 0xaa, 1000);  // runs after the free, and before the clearing
  });
  checked->deallocate(secret);
  const Block next = checked->allocate({.bytes = 1000, .stream = stream});
  ASSERT_EQ(next.data, secret.data) << "the pool hands it out at once on the same stream";
  go = true;
  std::size_t zeros = 0;
  stream.enqueue([&] {
    const auto* const bytes = static_cast<const unsigned char*>(next.data);
    zeros = static_cast<std::size_t>(std::count(bytes, bytes + 1000, 0));
  });
  stream.synchronize();
  EXPECT_EQ(zeros, 1000U);
  checked->deallocate(next);
}

TEST(Check, WorkThatIsStillInTheStreamOfAFreedBlockIsNotDisturbed) {
  const auto checked = check(pool("cpu"));
  const Reports reports;
  const Stream stream = make_stream("cpu");
  const Block block = checked->allocate({.bytes = 1000, .stream = stream});
  std::memset(block.data, 7, 1000);
  std::atomic<bool> go{false};
  std::size_t right = 0;
  stream.enqueue([&] {
    while (!go) std::this_thread::yield();
    const auto* const bytes = static_cast<const unsigned char*>(block.data);
    right = static_cast<std::size_t>(std::count(bytes, bytes + 1000, 7));
    std::memset(block.data, 8, 1000);
  });
  checked->deallocate(block);
  go = true;
  stream.synchronize();
  EXPECT_EQ(right, 1000U) << "the work sees what was there, and no pattern";
  checked->release_cached();
  EXPECT_TRUE(reports.all().empty());
}

TEST(Check, AnOverflowByWorkInAStreamIsFoundWhenTheBlockLeaves) {
  const auto checked = check(pool("cpu"));
  const Stream stream = make_stream("cpu");
  const Block block = checked->allocate({.bytes = 1000, .stream = stream});
  std::atomic<bool> go{false};
  stream.enqueue([&] {
    while (!go) std::this_thread::yield();
    poke(block.data, 1000);
  });
  checked->deallocate(block);
  go = true;
  stream.synchronize();
  const Reports reports;
  checked->release_cached();
  ASSERT_EQ(reports.all().size(), 1U);
  EXPECT_EQ(reports.all()[0].kind, MisuseKind::overflow);
}

TEST(Check, AHeldDeviceIsNeitherReadNorWritten) {
  const Device device = make_sim({});
  const auto checked = check(pool(device));
  const SimControl& sim = sim_control(device);
  const auto touched = [&] { return sim.count(SimOperation::fill) + sim.count(SimOperation::copy); };
  const Block first = checked->allocate({.bytes = 1000});
  const Block second = checked->allocate({.bytes = 1000});
  const Reports reports;
  {
    const Hold hold = checked->hold();
    const std::uint64_t before = touched();
    checked->deallocate(first);
    const std::optional<Block> served = checked->try_allocate({.bytes = 1000});
    ASSERT_TRUE(served) << "from what is cached";
    checked->deallocate_now(*served);
    checked->trim(0);
    EXPECT_EQ(touched(), before);
  }
  checked->deallocate(second);
  checked->release_cached();
  EXPECT_EQ(checked->stats().committed_bytes, 0U);
  EXPECT_TRUE(reports.all().empty());
}

TEST(Check, ABlockThatCannotBeClearedIsNotHandedOut) {
  const Device device = make_sim({});
  const auto checked = check(pool(device), {.zero = true});
  sim_control(device).fail_always(SimOperation::fill);
  EXPECT_ERROR(checked->allocate({.bytes = 100}), DeviceError, ErrorCode::device_error);
  EXPECT_EQ(checked->stats().live_blocks, 0U);
  EXPECT_EQ(checked->audit(), "");
  sim_control(device).clear_faults();
  checked->release_cached();
  EXPECT_EQ(checked->stats().committed_bytes, 0U);
  checked->deallocate(checked->allocate({.bytes = 100}));
}

}  // namespace
}  // namespace berth::testing

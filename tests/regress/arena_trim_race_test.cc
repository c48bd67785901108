// SPDX-License-Identifier: Apache-2.0
// The bug: an arena's trim released its lock while the device decommitted pages, but still counted them as
// committed; another thread cut a block from them and wrote to unmapped memory.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "support/everything.h"
#include "support/scale.h"

namespace berth::testing {
namespace {

TEST(Regress, AnArenaTrimmedByOneThreadServesAnother) {
  const auto scratch = arena("cpu", 16_MiB);
  std::atomic<bool> stop{false};
  std::thread trimmer([&] {
    while (!stop) {
      scratch->trim(0);
      // Gives the other thread a chance at the lock.
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  const std::uint64_t rounds = scaled(5000, 200);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    scratch->reserve(256_KiB);
    const Block block = scratch->allocate({.bytes = 128_KiB});
    std::memset(block.data, 1, block.bytes);
    scratch->deallocate(block);
    scratch->reset();
  }
  stop = true;
  trimmer.join();
  EXPECT_EQ(scratch->audit(), "");
  did(std::to_string(rounds) + " rounds against a thread that trims");
}

}  // namespace
}  // namespace berth::testing

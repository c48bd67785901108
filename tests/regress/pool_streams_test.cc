// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/everything.h"

// The bug: a pool kept every stream it had ever seen, and a cache of each thread for it, so that a program that
// makes a stream for each step leaked both.
namespace berth::testing {
namespace {

TEST(Regress, APoolLetsGoOfStreamsThatNobodyElseHas) {
  const Device device = make_sim({});
  const auto memory = pool(device);
  std::vector<std::weak_ptr<StreamState>> seen;
  std::vector<Block> kept;
  for (int step = 0; step < 200; ++step) {
    const Stream stream = make_stream(device);
    seen.push_back(stream.state());
    const Block small = memory->allocate({.bytes = 1000, .stream = stream});
    const Block large = memory->allocate({.bytes = 300000, .stream = stream});
    fill_bytes(small.data, device, 1, small.bytes, {.stream = stream, .non_blocking = true});
    fill_bytes(large.data, device, 2, large.bytes, {.stream = stream, .non_blocking = true});
    memory->deallocate(large);
    stream.synchronize();
    if (step % 10 == 0)
      kept.push_back(small);  // outlives its stream
    else
      memory->deallocate(small);
  }
  std::size_t alive = 0;
  for (const auto& stream : seen) alive += stream.expired() ? 0 : 1;
  EXPECT_LE(alive, 3U) << "of 200 streams";
  EXPECT_EQ(memory->audit(), "");
  for (const Block& block : kept) memory->deallocate(block);
  EXPECT_EQ(memory->stats().in_use_bytes, 0U);
  EXPECT_LE(memory->stats().peak_committed_bytes, 4_MiB) << "each stream's memory serves the next";
  EXPECT_EQ(memory->audit(), "");
}

}  // namespace
}  // namespace berth::testing

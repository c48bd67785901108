// SPDX-License-Identifier: Apache-2.0
// The bug: memory that a pool returned from many holes cut its range into as many mappings, until the process
// could start no thread, and the pool itself was refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "os/memory/mappings.h"
#include "os/memory/memory.h"
#include "os/system.h"
#include "support/checkerboard.h"
#include "support/everything.h"

namespace berth::testing {

using namespace internal;
namespace {

constexpr std::size_t kHole = 256_KiB;

std::size_t mappings_now() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator(maps), {}, '\n'));
}

// As many blocks of 1 MiB as the pool serves.
std::vector<Block> fill(Allocator& memory) {
  std::vector<Block> blocks;
  while (const std::optional<Block> block = memory.try_allocate({.bytes = 1_MiB})) blocks.push_back(*block);
  return blocks;
}

TEST(RegressMappings, StayUnderAShareOfTheKernelsMost) {
  constexpr std::size_t kHoles = 35'000;
  constexpr std::size_t kMost = 16'000;  // a quarter of what most kernels allow
  const std::size_t before = os::most_mappings();
  os::set_most_mappings(kMost);
  const auto memory = pool("cpu", {.limit_bytes = 2 * kHoles * kHole, .decay = PoolOptions::kNever});
  const std::vector<Block> left = checkerboard(*memory, kHoles, kHole);
  memory->release_cached();
  EXPECT_EQ(memory->stats().committed_bytes, kHoles * kHole);
  EXPECT_LE(mappings_now(), kMost);
  std::thread([&] { memory->deallocate(memory->allocate({.bytes = 100})); }).join();
  // All that the limit leaves is served, from holes that are shorter than a block.
  const std::vector<Block> more = fill(*memory);
  EXPECT_GE((more.size() + 1) * 1_MiB + 2_MiB, kHoles * kHole);
  EXPECT_LE(mappings_now(), kMost);
  EXPECT_EQ(memory->audit(), "");
  free_all(*memory, more);
  free_all(*memory, left);
  memory->release_cached();
  EXPECT_EQ(memory->audit(), "");
  os::set_most_mappings(before);
}

TEST(RegressMappings, AShareOfTheKernelsMostIsAllowed) {
  std::size_t most = 0;
  if (!(std::ifstream("/proc/sys/vm/max_map_count") >> most)) GTEST_SKIP() << "the kernel does not say";
  EXPECT_EQ(os::most_mappings(), std::min<std::size_t>(most / 4, 16384));
  EXPECT_EQ(os::count_mappings("/nowhere"), 0U) << "unknown";
  EXPECT_NEAR(static_cast<double>(os::count_mappings()), static_cast<double>(mappings_now()), 4);
}

// With few mappings, what is returned is really gone, what is committed again reads and writes, and what is
// live keeps its bytes.
TEST(RegressMappings, MemoryIsReturnedThoughTheyAreScarce) {
  constexpr std::size_t kHoles = 400;
  const std::size_t before = os::most_mappings();
  os::set_most_mappings(mappings_now() + 100);
  const auto memory = pool("cpu", {.limit_bytes = 2 * kHoles * kHole, .decay = PoolOptions::kNever});
  const std::vector<Block> left = checkerboard(
      *memory, kHoles, kHole, [](const Block& block, std::size_t i) { std::memset(block.data, static_cast<int>(i % 251), kHole); });
  memory->release_cached();
  const std::span<const std::byte> range = memory->range();
  EXPECT_LE(os::resident_bytes(range.data(), range.size()).value_or(0), (kHoles + kHoles / 10) * kHole);
  const std::vector<Block> more = fill(*memory);
  EXPECT_GE((more.size() + 1) * 1_MiB + 2_MiB, kHoles * kHole);
  for (const Block& block : more) std::memset(block.data, 7, block.bytes);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto* const bytes = static_cast<const unsigned char*>(left[i].data);
    EXPECT_EQ(bytes[0], (2 * i + 1) % 251);
    EXPECT_EQ(std::memcmp(bytes, bytes + 1, kHole - 1), 0) << "block " << i;
  }
  EXPECT_LE(mappings_now(), os::most_mappings() + 100);
  free_all(*memory, more);
  free_all(*memory, left);
  EXPECT_EQ(memory->audit(), "");
  os::set_most_mappings(before);
}

// The kernel says whether an address can be read, without a signal.
bool can_be_read(const void* address) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const bool can = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

// Pages that are closed for good, as those of a freed guarded block, fault however many mappings there are.
TEST(RegressMappings, WhatIsClosedOffFaultsThoughTheyAreScarce) {
  const std::size_t before = os::most_mappings();
  os::set_most_mappings(1);
  ASSERT_TRUE(os::are_mappings_scarce());
  const std::size_t page = os::page_bytes();
  const Result<void*> range = os::reserve(2 * page, page);
  ASSERT_TRUE(range);
  ASSERT_TRUE(os::commit(*range, 2 * page));
  EXPECT_TRUE(os::decommit(*range, page));
  EXPECT_TRUE(can_be_read(*range));
  EXPECT_TRUE(os::close_off(*range, page));
  EXPECT_FALSE(can_be_read(*range));
  EXPECT_TRUE(os::release(*range, 2 * page));
  os::set_most_mappings(before);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/sanitizers.h"
#include "os/system.h"
#include "support/everything.h"
#include "support/scale.h"

// What a pool tells the address sanitizer: which bytes are free, for as long as the pool has their addresses.
extern "C" void* __asan_region_is_poisoned(void* begin, std::size_t bytes);

namespace berth::testing {

using namespace internal;
namespace {

bool may_touch([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
  if constexpr (kAddressSanitizer)
    return __asan_region_is_poisoned(begin, bytes) == nullptr;
  else
    return true;
}
bool may_touch(const Block& block) { return may_touch(block.data, block.bytes); }

class PoolSanitizer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kAddressSanitizer) GTEST_SKIP() << "there is no address sanitizer in this build";
  }
};

TEST_F(PoolSanitizer, KnowsWhatIsFree) {
  const auto usual = pool("cpu");
  const auto with_regions = pool("cpu", {.region_waits = 0});
  const std::pair<std::shared_ptr<Allocator>, std::size_t> all[] = {
      {usual, 40}, {usual, 3000}, {usual, 300'000}, {usual, 5_MiB - 100}, {with_regions, 300'000}};
  for (const auto& [memory, bytes] : all) {
    const Block block = memory->allocate({.bytes = bytes});
    EXPECT_TRUE(may_touch(block));
    EXPECT_FALSE(may_touch(block.data, bytes + 8)) << "what rounding leaves behind a block of " << bytes;
    memory->deallocate(block);
    EXPECT_FALSE(may_touch(block.data, 1)) << bytes;
    EXPECT_FALSE(may_touch(static_cast<std::byte*>(block.data) + bytes - 1, 1)) << bytes;
    const Block again = memory->allocate({.bytes = bytes});
    EXPECT_TRUE(may_touch(again)) << bytes;
    memory->deallocate(again);
  }
}

// Blocks come and go until pages are moved, borrowed and released, and then the pools are destroyed.
TEST_F(PoolSanitizer, ForgetsAddressesWithThePool) {
  Random random(seed());
  std::vector<Block> seen;
  const std::size_t before = os::resident_memory().now_bytes;
  {
    const auto parent = pool("cpu");
    const std::vector<std::shared_ptr<Allocator>> all = {parent, private_pool(parent, {.fixed_pages = false})};
    std::vector<std::pair<Allocator*, Block>> live;
    const std::uint64_t steps = scaled(200'000, 5'000);
    for (std::uint64_t i = 0; i < steps; ++i) {
      Allocator& memory = *all[random.below(all.size())];
      if (random.one_in(500)) memory.trim(random.below(32_MiB));
      if (live.size() < 300 && random.one_in(2)) {
        const std::uint64_t kind = random.below(100);
        live.emplace_back(&memory, memory.allocate({.bytes = 1 + random.below(kind < 80 ? 4096 : kind < 97 ? 100'000 : 4_MiB)}));
        ASSERT_TRUE(may_touch(live.back().second)) << "step " << i;
        seen.push_back(live.back().second);
      } else if (!live.empty()) {
        std::swap(live[random.below(live.size())], live.back());
        random.one_in(50) ? live.back().first->deallocate_now(live.back().second) : live.back().first->deallocate(live.back().second);
        live.pop_back();
      }
    }
    for (const auto& [memory, block] : live) memory->deallocate(block);
  }
  for (const Block& block : seen) ASSERT_TRUE(may_touch(block));
  // The shadow memory of the whole range would take an eighth of it, and the range is four times the machine's
  // memory; it would stay resident.
  EXPECT_LT(os::resident_memory().now_bytes, before + 1_GiB);
  did(std::to_string(seen.size()) + " blocks");
}

}  // namespace
}  // namespace berth::testing

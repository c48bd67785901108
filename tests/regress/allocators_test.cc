// SPDX-License-Identifier: Apache-2.0
// Bugs in which allocators served requests wrongly, or refused them wrongly. Each comment describes the bug.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "memory/adaptor.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/misuse_log.h"

namespace berth::testing {

using namespace internal::memory;
namespace {

// A mark was recognized by its numbers alone: after a reset and other allocations it pointed into a live block.
TEST(Regress, AnArenaKnowsAMarkByTheBlockBeforeIt) {
  const auto scratch = arena("cpu", 1_MiB);
  for (int i = 0; i < 3; ++i) scratch->deallocate(scratch->allocate({.bytes = 64}));
  const ArenaMark stale = scratch->mark();
  scratch->reset();
  const Storage live = full({3, 1000}, 7, DType::i32, scratch);
  const Block more[2] = {scratch->allocate({.bytes = 64}), scratch->allocate({.bytes = 64})};
  EXPECT_ERROR(scratch->reset(stale), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_EQ(scratch->audit(), "");
  for (const Block& block : more) scratch->deallocate(block);
  EXPECT_EQ(live.item<std::int32_t>({2, 999}), 7);
}

// One counter for all limits made the inner of two limits refuse instead of wait.
TEST(Regress, ALimitInsideALimitWaitsForPendingRequests) {
  class HoldsUpThenRefuses : public Adaptor<Allocator> {
   public:
    HoldsUpThenRefuses() : Adaptor("slow", direct("cpu")) {}
    Status obtain(const Request& request, Block& block) noexcept override {
      if (request.tag != Tag("slow")) return upstream_->obtain(request, block);
      entered.set_value();
      go_on.get_future().wait();
      return Failure{ErrorCode::out_of_memory, 0, "planned"};
    }
    std::promise<void> entered;
    std::promise<void> go_on;
  };
  const auto slow = std::make_shared<HoldsUpThenRefuses>();
  const auto nested = limit(limit(slow, 100), 1000);
  std::thread first([&] { EXPECT_FALSE(nested->try_allocate({.bytes = 80, .tag = "slow"})); });
  slow->entered.get_future().wait();
  std::optional<Block> second;
  std::thread other([&] { second = nested->try_allocate({.bytes = 60}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  slow->go_on.set_value();
  first.join();
  other.join();
  ASSERT_TRUE(second.has_value());
  nested->deallocate(*second);
}

// A bare address passed to the inner allocator freed the block without the knowledge of the adaptors around it.
TEST(Regress, ABlockCannotBeFreedBelowItsAdaptors) {
  const auto inner = direct("cpu");
  const auto outer = limit(inner, 100);
  const Block block = outer->allocate({.bytes = 80});
  const MisuseLog log;
  inner->deallocate(inner->block_at(block.data, block.bytes));
  EXPECT_EQ(log.reported(), std::vector{MisuseKind::foreign_free});
  outer->deallocate(outer->block_at(block.data, block.bytes));
  const auto all = outer->try_allocate({.bytes = 100});
  EXPECT_TRUE(all.has_value());
  if (all) outer->deallocate(*all);
}

// A child inherited a hold of a thread that does not exist in it, and could never allocate again.
TEST(Regress, AForkedChildIsNotHeld) {
  const auto memory = direct("cpu");
  const auto scratch = arena("cpu", 1_MiB);
  const Hold quiet = memory->hold();
  const Hold still = scratch->hold();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(memory->try_allocate({.bytes = 8}) && scratch->try_allocate({.bytes = 8}) ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(memory->try_allocate({.bytes = 8}).has_value()) << "the parent is";
}

TEST(Regress, AnArenaThatIsHeldOrLostSaysWhich) {
  const Device device = make_sim({});
  const auto scratch = arena(device, 1_MiB);
  {
    const Hold quiet = scratch->hold();
    EXPECT_ERROR(scratch->reserve(1000), AccessError, ErrorCode::busy);
  }
  sim_control(device).lose();
  EXPECT_ERROR(scratch->reserve(1000), DeviceError, ErrorCode::device_lost);
}

TEST(Regress, ARefusalIsBlamedOnTheLayerThatMadeIt) {
  const auto failing = fail(limit(direct("cpu"), 100), {.nth = 1});
  EXPECT_FALSE(failing->try_allocate({.bytes = 1}));
  try {
    failing->allocate({.bytes = 200});
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().refused_by, "limit of 100 B");
  }
}

TEST(Regress, NullArgumentsAreErrors) {
  EXPECT_ERROR(empty({1}, DType::u8, std::shared_ptr<Allocator>()), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(make_buffer(4, std::shared_ptr<Allocator>()), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(MemoryResource(nullptr), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR((void)attach_sink(nullptr), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(Device(static_cast<const char*>(nullptr)), DeviceError, ErrorCode::no_such_device);
  EXPECT_ERROR(from_values(nullptr, 4, DType::f32, {4}, "cpu", DType::f32), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(backend(Device::from_key({999, 0})), DeviceError, ErrorCode::device_unavailable);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>

#include "os/inject.h"
#include "support/everything.h"
#include "support/heap_faults.h"
#include "support/misuse_log.h"
#include "support/scale.h"

// The nth failure: a scenario that uses all of the core runs again and again, and each time the next
// allocation, commit or system call fails. Nothing may leak, and no existing object may change.
namespace berth::testing {

using namespace internal;
namespace {

// What exists before and must be the same afterwards.
class StorageWorld {
 public:
  explicit StorageWorld(Device on) : device(on), tracked(track(direct(on))), kept(full({8}, 42, DType::i32, tracked)) {}

  void expect_unchanged() const {
    EXPECT_EQ(tracked->live().size(), 1U) << "something was leaked";
    EXPECT_EQ(tracked->audit(), "");
    EXPECT_TRUE(equal(kept, full({8}, 42, DType::i32, "cpu"))) << "something else was changed";
  }

  Device device;
  std::shared_ptr<TrackAdaptor> tracked;
  Storage kept;
};

// A bit of everything. Throws when something fails.
void scenario(StorageWorld& world, const std::shared_ptr<Allocator>& memory) {
  const TagScope scope("scenario");
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Storage x = from_data(values, {2, 3}, memory);
  const Storage y = x.transpose(0, 1).to(DType::f64);
  const Storage z = full({3, 2}, 0, DType::f64, memory);
  z.copy_from(y);
  const Storage deep = x.reshape({1, 1, 2, 1, 3, 1, 1, 1}).clone();
  const Buffer raw = make_buffer(1000, memory, {.tag = "raw"});
  raw.fill(3);
  const Storage back = from_dlpack(to_dlpack(z));
  const std::vector<Storage> sources = {x, back.transpose(0, 1)};
  const std::vector<Storage> targets = {empty({2, 3}, DType::bf16, memory), empty({2, 3}, DType::i8, world.device)};
  copy_batch(sources, targets);
  const Stream stream = make_stream(world.device);
  z.copy_from(y, {.stream = stream});
  const auto limited = limit(trace(memory), 1_MiB);
  const Block block = limited->allocate({.bytes = 64});
  limited->deallocate(block);
  const auto scratch = arena(world.device, 1_MiB);
  { const Storage s = zeros({1000}, DType::f32, scratch); }
  scratch->reset();
  (void)to_json(inspect(deep));
}

enum class Outcome { finished, failed };

Outcome run(StorageWorld& world, const std::shared_ptr<Allocator>& memory) {
  try {
    scenario(world, memory);
    return Outcome::finished;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::out_of_memory || error.code() == ErrorCode::device_error) << error.what();
    return Outcome::failed;
  } catch (const std::bad_alloc&) {
    return Outcome::failed;
  }
}

// Runs the scenario with the nth operation failing, for every n.
void sweep(StorageWorld& world, const std::string& what, const std::function<bool(std::uint64_t nth)>& attempt) {
  run(world, world.tracked);  // makes everything that is made once, on first use
  std::uint64_t nth = 1;
  while (attempt(nth)) {
    world.expect_unchanged();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "after failing " << what << " number " << nth;
    ++nth;
  }
  world.expect_unchanged();
  EXPECT_GT(nth, 3U) << "the scenario has too little of " << what;
  did("failed each of " + std::to_string(nth - 1) + " " + what + " on " + world.device.to_string());
}

class NthFailure : public ::testing::TestWithParam<bool> {
 protected:
  Device device() const { return GetParam() ? make_sim({.background = false}) : Device(); }
};

TEST_P(NthFailure, OfAllocationsChangesNothing) {
  StorageWorld world(device());
  sweep(world, "allocations", [&](std::uint64_t nth) {
    const auto failing = fail(world.tracked, {.nth = nth});
    run(world, failing);
    return failing->refused() > 0;
  });
}

TEST_P(NthFailure, OfOperatorNewChangesNothing) {
  StorageWorld world(device());
  sweep(world, "uses of the heap", [&](std::uint64_t nth) {
    bool happened = false;
    const std::int64_t before = live_news();
    {
      const FailNthNew fault(nth);
      run(world, world.tracked);
      happened = fault.happened();
    }
    // A worker thread frees what was passed to it, so with a host stream the balance of this thread may be
    // positive; it must not grow.
    EXPECT_TRUE(world.device == Device() || live_news() == before) << "heap memory was leaked";
    return happened;
  });
}

INSTANTIATE_TEST_SUITE_P(OnHostAndSim, NthFailure, ::testing::Bool(), [](const auto& param) { return param.param ? "sim" : "cpu"; });

TEST(NthFailure, OfEveryOperationOfTheDeviceChangesNothing) {
  for (const SimOperation operation :
       {SimOperation::reserve, SimOperation::commit, SimOperation::copy, SimOperation::fill, SimOperation::make_stream}) {
    StorageWorld world(make_sim({.background = false}));
    SimControl& control = sim_control(world.device);
    run(world, world.tracked);
    std::uint64_t nth = 1;
    for (;; ++nth) {
      const std::uint64_t before = control.count(operation);
      control.fail_after(
          operation, nth,
          operation == SimOperation::commit || operation == SimOperation::reserve ? ErrorCode::out_of_memory : ErrorCode::device_error);
      const Outcome outcome = run(world, world.tracked);
      control.clear_faults();
      const bool happened = control.count(operation) - before >= nth;
      EXPECT_EQ(outcome, happened ? Outcome::failed : Outcome::finished)
          << "operation " << static_cast<int>(operation) << " number " << nth;
      if (!happened) break;
      world.expect_unchanged();
      ASSERT_FALSE(HasFailure()) << "operation " << static_cast<int>(operation) << " number " << nth;
    }
    did("failed each of " + std::to_string(nth - 1) + " operations of kind " + std::to_string(static_cast<int>(operation)));
  }
}

std::atomic<int> g_calls{0};
std::atomic<int> g_fail_at{0};

TEST(NthFailure, OfEverySystemCallChangesNothing) {
  StorageWorld world{Device()};
  sweep(world, "system calls", [&](std::uint64_t nth) {
    g_calls = 0;
    g_fail_at = static_cast<int>(nth);
    os::set_injector([](std::string_view call) noexcept { return call != "munmap" && ++g_calls == g_fail_at ? ENOMEM : 0; });
    run(world, world.tracked);
    os::set_injector(nullptr);
    return g_calls >= static_cast<int>(nth);
  });
}

}  // namespace
}  // namespace berth::testing

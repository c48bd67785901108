// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/rounded.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "base/random.h"
#include "memory/buckets/rounding.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/heap_faults.h"
#include "support/misuse_log.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

Device quiet_sim(std::size_t capacity_bytes) {
  return make_sim({.capacity_bytes = capacity_bytes, .page_bytes = 4096, .background = false});
}

Device quiet_sim() { return quiet_sim(64_MiB); }

void* address_of_next(const std::shared_ptr<Allocator>& memory, std::size_t bytes, StreamRef stream = {}) {
  const Block block = memory->allocate({.bytes = bytes, .stream = stream});
  memory->deallocate(block);
  return block.data;
}

TEST(Rounding, IsPowersOfTwoUpToTheCutoffThenMultiplesOfIt) {
  constexpr Rounding kRounding{64, 1024};
  struct Row {
    std::size_t bytes, rounded;
  };
  for (const auto& [bytes, expected] : {Row{1, 64}, Row{63, 64}, Row{64, 64}, Row{65, 128}, Row{128, 128}, Row{513, 1024}, Row{1023, 1024},
                                        Row{1024, 1024}, Row{1025, 2048}, Row{2048, 2048}, Row{2049, 3072}, Row{10 * 1024, 10 * 1024}})
    EXPECT_EQ(kRounding.round(bytes), expected) << bytes;
  EXPECT_EQ(kRounding.round(SIZE_MAX), std::nullopt);
  EXPECT_EQ(kRounding.round(SIZE_MAX - 1023), SIZE_MAX - 1023);
}

TEST(Rounding, WithTheCutoffAtTheLeastIsMultiples) {
  constexpr Rounding kRounding{512, 512};
  for (std::size_t bytes = 1; bytes < 5000; ++bytes) EXPECT_EQ(kRounding.round(bytes), (bytes + 511) / 512 * 512);
}

TEST(Rounded, CountsWhatItTakesAndNotWhatWasAsked) {
  const auto memory = rounded("cpu", {.least_bytes = 256, .cutoff_bytes = 4096});
  const std::vector<std::pair<std::size_t, std::size_t>> rows = {{1, 256}, {257, 512}, {4096, 4096}, {4097, 8192}, {9000, 12288}};
  std::size_t taken = 0;
  std::size_t asked = 0;
  std::vector<Block> live;
  for (const auto& [bytes, expected] : rows) {
    live.push_back(memory->allocate({.bytes = bytes}));
    taken += expected;
    asked += bytes;
    const Stats now = memory->stats();
    EXPECT_EQ(now.committed_bytes, taken) << bytes;
    EXPECT_EQ(now.in_use_bytes, asked) << bytes;
    EXPECT_EQ(now.cached_bytes, taken - asked) << "rounding is in cached";
  }
  EXPECT_EQ(memory->stats().commits, rows.size());
  for (const Block& block : live) memory->deallocate(block);
  EXPECT_EQ(memory->stats().cached_bytes, taken);
  memory->release_cached();
  EXPECT_EQ(memory->stats().committed_bytes, 0U);
  EXPECT_EQ(memory->stats().decommits, rows.size());
  EXPECT_EQ(memory->stats().peak_committed_bytes, taken);
}

TEST(Rounded, AgreesWithTheDeviceAboutWhatItHolds) {
  const Device device = quiet_sim();
  const auto memory = rounded(device, {.least_bytes = 512});
  const Block small = memory->allocate({.bytes = 100});
  const Block large = memory->allocate({.bytes = 70000});
  EXPECT_EQ(memory->stats().committed_bytes, 4096U + 131072U) << "a block has pages of its own here";
  EXPECT_EQ(memory->stats().committed_bytes, sim_control(device).committed_bytes());
  memory->deallocate(small);
  memory->deallocate_now(large);
  EXPECT_EQ(memory->stats().committed_bytes, sim_control(device).committed_bytes());
  memory->release_cached();
  EXPECT_EQ(sim_control(device).committed_bytes(), 0U);
}

TEST(Rounded, ReusesAFreedBlockForItsBucketAlone) {
  const auto memory = rounded("cpu", {.least_bytes = 64, .cutoff_bytes = 1_MiB});
  void* const first = address_of_next(memory, 600);
  EXPECT_EQ(address_of_next(memory, 1000), first) << "both are 1 KiB";
  EXPECT_EQ(memory->stats().commits, 1U);
  EXPECT_NE(address_of_next(memory, 500), first) << "half of it is another bucket";
  EXPECT_NE(address_of_next(memory, 1025), first);
  EXPECT_EQ(memory->stats().commits, 3U);
  EXPECT_EQ(memory->audit(), "");
}

TEST(Rounded, KeepsOverAlignedBlocksApart) {
  const auto memory = rounded("cpu");
  const Block aligned = memory->allocate({.bytes = 1000, .alignment = 4096});
  memory->deallocate(aligned);
  EXPECT_NE(address_of_next(memory, 1000), aligned.data) << "it is kept for those who need it";
  const Block again = memory->allocate({.bytes = 900, .alignment = 4096});
  EXPECT_EQ(again.data, aligned.data);
  EXPECT_EQ(memory->stats().commits, 2U);
  const Block less = memory->allocate({.bytes = 1000, .alignment = 8});
  EXPECT_EQ(memory->stats().commits, 2U) << "less than the device's alignment is the device's";
  memory->deallocate(again);
  memory->deallocate(less);
}

TEST(Rounded, RefusesOptionsThatContradict) {
  for (const RoundedOptions& bad :
       {RoundedOptions{.cutoff_bytes = 0}, RoundedOptions{.cutoff_bytes = 3_MiB}, RoundedOptions{.least_bytes = 100},
        RoundedOptions{.cutoff_bytes = SIZE_MAX}, RoundedOptions{.cutoff_bytes = std::size_t{1} << 63},
        RoundedOptions{.least_bytes = 2_MiB, .cutoff_bytes = 1_MiB}, RoundedOptions{.limit_bytes = 0},
        RoundedOptions{.least_bytes = 4096, .limit_bytes = 4095}})
    EXPECT_ERROR(rounded("cpu", bad), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(rounded(quiet_sim(), {.least_bytes = 512, .limit_bytes = 1024}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(rounded("sim:999"), DeviceError, ErrorCode::no_such_device);
  try {
    rounded("cpu", {.least_bytes = 2_MiB, .cutoff_bytes = 1_MiB});
  } catch (const ArgumentError& error) {
    EXPECT_EQ(error.fact("least"), "2097152");
    EXPECT_EQ(error.fact("cutoff"), "1048576");
  }
}

TEST(Rounded, IsMadeFromTextAndPrintsItsSettings) {
  EXPECT_EQ(make_allocator("rounded:cutoff=32MiB,least=512", "cpu")->settings(),
            "rounded on cpu:0, powers of two from 512 B to 32 MiB, then multiples of that");
  EXPECT_EQ(make_allocator("rounded", "cpu")->settings(), "rounded on cpu:0, powers of two from 64 B to 16 MiB, then multiples of that");
  EXPECT_EQ(make_allocator("rounded:limit=1GiB", "sim:0")->settings(),
            "rounded on sim:0, powers of two from 64 KiB to 16 MiB, then multiples of that, at most 1 GiB");
  EXPECT_EQ(make_allocator("rounded:cutoff=32", "cpu")->settings(),
            "rounded on cpu:0, powers of two from 32 B to 32 B, then multiples of that");
  for (const char* bad : {"rounded:16MiB", "rounded:cutoff", "rounded:cutoff=", "rounded:cutoff=x", "rounded:cutoff=16MiB,cutoff=1MiB",
                          "rounded:least=512,", "rounded:,", "rounded:granularity=64", "rounded:least=0", "rounded:limit=0",
                          "rounded:least=3", "rounded:least=2MiB,cutoff=1MiB", "Rounded"})
    EXPECT_ERROR(make_allocator(bad, "cpu"), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Rounded, IsChosenByTheEnvironment) {
  setenv("BERTH_SIM_ALLOCATOR", "rounded:cutoff=1MiB", 1);
  EXPECT_EQ(default_allocator(quiet_sim())->name(), "rounded");
  setenv("BERTH_SIM_ALLOCATOR", "rounded:least=2MiB,cutoff=1MiB", 1);
  EXPECT_ERROR(default_allocator(quiet_sim()), ArgumentError, ErrorCode::invalid_argument);
  unsetenv("BERTH_SIM_ALLOCATOR");
}

TEST(Rounded, ReusesAFreedBlockOnItsOwnStreamAtOnceAndOnAnotherWhenItsWorkIsDone) {
  const Device device = quiet_sim();
  const auto memory = rounded(device);
  const Stream a = make_stream(device);
  const Stream b = make_stream(device);
  const Block block = memory->allocate({.bytes = 5000, .stream = a});
  a.enqueue([] {});  // runs only when something waits
  memory->deallocate(block);
  const Block own = memory->allocate({.bytes = 5000, .stream = a});
  EXPECT_EQ(own.data, block.data) << "the stream keeps the order";
  memory->deallocate(own);
  const Block other = memory->allocate({.bytes = 5000, .stream = b});
  const Block none = memory->allocate({.bytes = 5000});
  EXPECT_NE(other.data, block.data) << "the work may still use it";
  EXPECT_NE(none.data, block.data);
  a.synchronize();
  const Block after = memory->allocate({.bytes = 5000, .stream = b});
  EXPECT_EQ(after.data, block.data) << "now it is known to be over";
  for (const Block& live : {other, none, after}) memory->deallocate(live);
  EXPECT_EQ(memory->audit(), "");
}

TEST(Rounded, AnEventThatIsNotDoneYetIsAskedAgain) {
  const Device device = quiet_sim();
  const auto memory = rounded(device);
  const Stream a = make_stream(device);
  const Block first = memory->allocate({.bytes = 5000, .stream = a});
  const Block second = memory->allocate({.bytes = 5000, .stream = a});
  const Event begun = a.enqueue([] {});
  memory->deallocate(first);
  const Block apart = memory->allocate({.bytes = 5000});  // records an event after the first free
  a.enqueue([] {});
  memory->deallocate(second);
  begun.wait();
  const Block early = memory->allocate({.bytes = 5000});
  EXPECT_EQ(early.data, first.data);
  const Block late = memory->allocate({.bytes = 5000});
  EXPECT_NE(late.data, second.data) << "the work before the second free has not run";
  a.synchronize();
  EXPECT_EQ(address_of_next(memory, 5000), second.data);
  for (const Block& live : {apart, early, late}) memory->deallocate(live);
}

// Every block is filled in its stream, then checked in it: the memory's previous user must be done with it.
TEST(Rounded, NoBlockIsOverwrittenByTheWorkOfAnotherStream) {
  const std::uint64_t schedules = scaled(2000, 20);
  for (std::uint64_t at = 0; at < schedules; ++at) {
    const Device device = make_sim({.capacity_bytes = 1_MiB, .page_bytes = 4096, .seed = seed() + at, .background = false});
    const auto memory = at % 2 == 0 ? rounded(device) : exact(device);
    Random random(seed() + at);
    std::vector<Stream> streams;
    for (int i = 0; i < 3; ++i) streams.push_back(make_stream(device));
    std::vector<std::unique_ptr<std::vector<unsigned char>>> seen;
    std::vector<unsigned char> expected;
    for (int i = 0; i < 30; ++i) {
      const Stream& stream = streams[random.below(3)];
      const Block block = memory->allocate({.bytes = 1 + random.below(3) * 4096, .stream = stream});
      const auto value = static_cast<unsigned char>(i + 1);
      seen.push_back(std::make_unique<std::vector<unsigned char>>(block.bytes));
      expected.push_back(value);
      fill_bytes(block.data, device, value, block.bytes, {.stream = stream, .non_blocking = true});
      copy_bytes(seen.back()->data(), "cpu", block.data, device, block.bytes, {.stream = stream, .non_blocking = true});
      memory->deallocate(block);
    }
    const Stream join = make_stream(device);  // so that all streams run together
    for (const Stream& stream : streams) join.wait(stream.record());
    join.synchronize();
    for (std::size_t i = 0; i < seen.size(); ++i)
      ASSERT_TRUE(std::ranges::all_of(*seen[i], [&](unsigned char byte) { return byte == expected[i]; })) << "schedule " << at;
    ASSERT_EQ(memory->audit(), "");
  }
  did("ran " + std::to_string(schedules) + " schedules from seed " + std::to_string(seed()));
}

TEST(Rounded, GivesItsCacheBackBeforeItReportsAFullDevice) {
  const Device device = quiet_sim(1_MiB);
  const auto memory = rounded(device);
  std::vector<Block> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(memory->allocate({.bytes = 64_KiB}));
  for (const Block& block : blocks) memory->deallocate(block);
  EXPECT_EQ(memory->stats().cached_bytes, 1_MiB);
  const Block whole = memory->allocate({.bytes = 1_MiB, .tag = "whole"});
  EXPECT_EQ(memory->stats().decommits, 16U);
  EXPECT_EQ(memory->stats().failures, 0U);
  try {
    memory->allocate({.bytes = 5000});
    FAIL();
  } catch (const OutOfMemory& error) {
    const OutOfMemoryReport& report = error.report();
    EXPECT_EQ(report.refused_by, "the device");
    EXPECT_EQ(report.in_use_bytes, 1_MiB);
    EXPECT_EQ(report.cached_bytes, 0U);
    EXPECT_EQ(report.would_be_enough_bytes, 8192U) << "5000 bytes take 8 KiB";
    ASSERT_EQ(report.top_holders.size(), 1U);
    EXPECT_EQ(report.top_holders[0].tag, Tag("whole"));
    ASSERT_EQ(report.tried.size(), 3U);
    EXPECT_EQ(report.tried[0], "looked for a free block of 8 KiB");
    EXPECT_EQ(report.tried[1], "released all cached memory, and asked again");
  }
  memory->deallocate(whole);
  EXPECT_EQ(memory->audit(), "");
}

TEST(Rounded, WaitsForStreamsBeforeItReportsAFullDevice) {
  const Device device = quiet_sim(1_MiB);
  const auto memory = rounded(device);
  const Stream a = make_stream(device);
  const Block block = memory->allocate({.bytes = 1_MiB, .stream = a});
  bool ran = false;
  a.enqueue([&] { ran = true; });
  memory->deallocate(block);
  memory->release_cached();
  EXPECT_EQ(memory->stats().committed_bytes, 1_MiB) << "trim waits for nobody";
  EXPECT_FALSE(ran);
  const Block next = memory->allocate({.bytes = 4096});
  EXPECT_TRUE(ran);
  memory->deallocate(next);
}

TEST(Rounded, KeepsToItsLimitAndUsesAllOfIt) {
  const auto memory = rounded("cpu", {.limit_bytes = 64_KiB});
  const Block half = memory->allocate({.bytes = 32_KiB});
  memory->deallocate(memory->allocate({.bytes = 16_KiB}));
  memory->deallocate(memory->allocate({.bytes = 8_KiB}));
  const Block rest = memory->allocate({.bytes = 32_KiB});  // cached memory must be released first
  EXPECT_EQ(memory->stats().committed_bytes, 64_KiB);
  try {
    memory->allocate({.bytes = 65});
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().refused_by, "the limit of 64 KiB of rounded");
    EXPECT_EQ(error.report().limit_bytes, 64_KiB);
    EXPECT_EQ(error.report().would_be_enough_bytes, 128U);
  }
  memory->deallocate(half);
  EXPECT_FALSE(memory->try_allocate({.bytes = 64_KiB + 1}));
  EXPECT_EQ(memory->stats().cached_bytes, 32_KiB) << "what can never fit costs no cache";
  memory->deallocate(rest);
  EXPECT_EQ(memory->audit(), "");
}

TEST(Rounded, TrimGivesTheLargestBackFirst) {
  const auto memory = rounded("cpu");
  std::vector<Block> blocks;
  for (const std::size_t bytes : {1_KiB, 64_KiB, 1_MiB, 1_KiB, 8_KiB}) blocks.push_back(memory->allocate({.bytes = bytes}));
  for (const Block& block : blocks) memory->deallocate(block);
  memory->trim(2_MiB);
  EXPECT_EQ(memory->stats().decommits, 0U);
  memory->trim(100_KiB);
  EXPECT_EQ(memory->stats().cached_bytes, 74_KiB);
  memory->trim(10_KiB);
  EXPECT_EQ(memory->stats().cached_bytes, 10_KiB);
  memory->release_cached();
  EXPECT_EQ(memory->stats().committed_bytes, 0U);
}

TEST(Rounded, ReserveHasABlockReadyForOneRequest) {
  const auto memory = rounded("cpu", {.limit_bytes = 4_MiB});
  memory->reserve(0);
  EXPECT_EQ(memory->stats().commits, 0U);
  memory->reserve(1'000'000);
  memory->reserve(1_MiB);
  EXPECT_EQ(memory->stats().commits, 1U) << "one is enough for both";
  EXPECT_EQ(memory->stats().cached_bytes, 1_MiB);
  {
    const Hold quiet = memory->hold();
    const Block block = memory->allocate({.bytes = 1_MiB - 5});
    EXPECT_FALSE(memory->try_allocate({.bytes = 1_MiB}));
    EXPECT_ERROR(memory->reserve(1_MiB), AccessError, ErrorCode::busy);
    memory->deallocate(block);
    EXPECT_EQ(address_of_next(memory, 1_MiB), block.data) << "what is freed in a hold serves in it";
    memory->release_cached();
    EXPECT_EQ(memory->stats().committed_bytes, 1_MiB);
  }
  EXPECT_THROW(memory->reserve(5_MiB), OutOfMemory);
  EXPECT_EQ(memory->stats().committed_bytes, 1_MiB);
}

TEST(Rounded, AHoldKeepsBackWhatIsFreedAtOnce) {
  const Device device = quiet_sim();
  const auto memory = rounded(device);
  const Block now = memory->allocate({.bytes = 64_KiB});
  const Block later = memory->allocate({.bytes = 64_KiB});
  {
    const Hold quiet = memory->hold();
    memory->deallocate_now(now);
    memory->deallocate(later);
    EXPECT_EQ(sim_control(device).committed_bytes(), 128_KiB);
    EXPECT_EQ(memory->stats().cached_bytes, 128_KiB);
    EXPECT_EQ(memory->audit(), "");
  }
  EXPECT_EQ(sim_control(device).committed_bytes(), 64_KiB) << "only the one that was to go";
  EXPECT_EQ(address_of_next(memory, 64_KiB), later.data);
}

TEST(Rounded, DeallocateNowWaitsForTheStream) {
  const Device device = quiet_sim();
  const auto memory = rounded(device);
  const Stream a = make_stream(device);
  const Block block = memory->allocate({.bytes = 5000, .stream = a});
  bool ran = false;
  a.enqueue([&] { ran = true; });
  memory->deallocate_now(block);
  EXPECT_TRUE(ran);
  EXPECT_EQ(sim_control(device).committed_bytes(), 0U);
}

// The last handle may be dropped in work of the very stream that cached memory waits for.
TEST(Rounded, EndsWithoutWaitingAndItsMemoryGoesBackInTheStreamsTurn) {
  const Device device = quiet_sim();
  const Stream a = make_stream(device);
  auto memory = rounded(device);
  memory->deallocate(memory->allocate({.bytes = 5000}));
  const Block block = memory->allocate({.bytes = 5000, .stream = a});
  const Block kept = memory->allocate({.bytes = 5000, .stream = a});
  memory->deallocate(kept);
  a.enqueue([keeps = std::move(memory), block]() mutable {
    keeps->deallocate(block);
    keeps = nullptr;
  });
  EXPECT_EQ(sim_control(device).committed_bytes(), 16384U);
  a.synchronize();  // runs the work, and what it enqueued
  a.synchronize();
  EXPECT_EQ(sim_control(device).committed_bytes(), 0U);
}

TEST(Rounded, ASecondFreeByAddressIsSeenWhileTheBlockIsCached) {
  const auto memory = rounded("cpu");
  const Block block = memory->allocate({.bytes = 500});
  memory->deallocate(block);
  const MisuseLog log;
  memory->deallocate(memory->block_at(block.data, 500));
  EXPECT_EQ(log.reported(), std::vector{MisuseKind::double_free});
}

TEST(Rounded, LeavesALostDeviceAlone) {
  const Device device = quiet_sim();
  auto memory = rounded(device);
  const Block live = memory->allocate({.bytes = 100});
  memory->deallocate(memory->allocate({.bytes = 10000}));
  sim_control(device).lose();
  const std::uint64_t releases = sim_control(device).count(SimOperation::release);
  EXPECT_ERROR(memory->allocate({.bytes = 1_MiB}), DeviceError, ErrorCode::device_lost);
  EXPECT_ERROR(memory->reserve(1_MiB), DeviceError, ErrorCode::device_lost);
  memory->deallocate_now(live);
  memory->release_cached();
  EXPECT_EQ(memory->audit(), "");
  memory = nullptr;
  EXPECT_EQ(sim_control(device).count(SimOperation::release), releases);
}

int status_of_child(const std::function<bool()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    _exit(child() ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

TEST(Rounded, AForkedChildUsesHostMemoryAndLeavesADeviceAlone) {
  const Device device = quiet_sim();
  const auto host = rounded("cpu");
  const auto simulated = rounded(device);
  const Block on_host = host->allocate({.bytes = 1000});
  const Block on_sim = simulated->allocate({.bytes = 1000});
  simulated->deallocate(simulated->allocate({.bytes = 1000}));
  const Hold quiet = host->hold();
  EXPECT_EQ(status_of_child([&] {
              host->deallocate(on_host);
              const bool served = host->try_allocate({.bytes = 100000}).has_value();
              bool refused = false;
              try {
                simulated->allocate({.bytes = 1000});
              } catch (const DeviceError& error) {
                refused = error.code() == ErrorCode::fork_unsafe;
              }
              simulated->deallocate_now(on_sim);
              simulated->release_cached();
              return served && refused && host->audit().empty() && simulated->audit().empty();
            }),
            0);
  EXPECT_EQ(simulated->stats().live_blocks, 1U);
  simulated->deallocate(on_sim);
  host->deallocate(on_host);
}

// ---- the nth failure

struct World {
  explicit World(const char* text) : device(quiet_sim(1_MiB)), memory(make_allocator(text, device)) {}

  // A bit of everything; nothing stays allocated, whatever fails.
  void run() {
    std::vector<Block> live;
    live.reserve(64);
    const auto get = [&](std::size_t bytes, std::size_t alignment, StreamRef on) {
      if (const auto block = memory->try_allocate({.bytes = bytes, .alignment = alignment, .stream = on})) live.push_back(*block);
    };
    const auto clear = [&](Allocator::When when) {
      for (const Block& block : live) when == Allocator::When::now ? memory->deallocate_now(block) : memory->deallocate(block);
      live.clear();
    };
    for (const std::size_t bytes : std::initializer_list<std::size_t>{100, 5000, 70000, 9000, 300000}) get(bytes, 0, {});
    get(100, 65536, {});
    clear(Allocator::When::later);
    for (int i = 0; i < 3; ++i) get(20000, 0, stream);
    clear(Allocator::When::later);
    for (int i = 0; i < 3; ++i) get(20000, 0, {});
    get(900000, 0, {});
    clear(Allocator::When::now);
    try {
      memory->reserve(40000);
    } catch (const OutOfMemory&) {
    } catch (const std::bad_alloc&) {  // no heap for the report
    }
  }

  void expect_sound() const {
    EXPECT_EQ(memory->audit(), "");
    EXPECT_EQ(memory->stats().in_use_bytes, 0U);
    EXPECT_EQ(memory->stats().committed_bytes, sim_control(device).committed_bytes());
  }

  Device device;
  std::shared_ptr<Allocator> memory;
  Stream stream = make_stream(device);
};

class BucketFaults : public ::testing::TestWithParam<const char*> {};

TEST_P(BucketFaults, TheNthFailureOfTheDeviceLosesNothing) {
  for (const SimOperation operation : {SimOperation::reserve, SimOperation::commit}) {
    std::uint64_t nth = 1;
    for (bool happened = true; happened; ++nth) {
      World world(GetParam());
      SimControl& control = sim_control(world.device);
      control.fail_after(operation, nth);
      world.run();
      happened = control.count(operation) >= nth;
      control.clear_faults();
      world.expect_sound();
      world.memory->release_cached();
      EXPECT_EQ(control.reserved_bytes(), 0U);
      ASSERT_FALSE(HasFailure()) << "operation " << static_cast<int>(operation) << " number " << nth;
    }
    EXPECT_GT(nth, 5U);
    did("failed each of " + std::to_string(nth - 2) + " operations");
  }
}

TEST_P(BucketFaults, TheNthFailureOfTheHeapLosesNothing) {
  std::uint64_t nth = 1;
  for (bool happened = true; happened; ++nth) {
    World world(GetParam());
    {
      const FailNthNew fault(nth);
      try {
        world.run();
      } catch (const std::bad_alloc&) {  // of the scenario itself
      }
      happened = fault.happened();
    }
    world.stream.synchronize();
    world.expect_sound();
    world.memory->release_cached();
    EXPECT_EQ(sim_control(world.device).reserved_bytes(), 0U);
    ASSERT_FALSE(HasFailure()) << "use of the heap number " << nth;
  }
  EXPECT_GT(nth, 20U);
  did("failed each of " + std::to_string(nth - 2) + " uses of the heap");
}

INSTANTIATE_TEST_SUITE_P(Strategies, BucketFaults, ::testing::Values("rounded:least=512,cutoff=64KiB", "exact"), [](const auto& param) {
  const std::string text = param.param;
  return text.substr(0, text.find(':'));
});

// ---- at random, and from many threads

TEST(Rounded, RandomOperationsKeepItSound) {
  const std::uint64_t steps = scaled(100'000, 2000);
  for (const char* text : {"rounded:least=64,cutoff=4KiB,limit=1MiB", "exact:limit=1MiB"}) {
    const auto memory = make_allocator(text, "cpu");
    Random random(seed());
    std::vector<Block> live;
    std::vector<Hold> holds;
    for (std::uint64_t i = 0; i < steps; ++i) {
      const std::uint64_t what = random.below(100);
      if (what < 50) {
        const std::size_t alignment = random.one_in(10) ? std::size_t{64} << random.below(6) : 0;
        if (const auto block = memory->try_allocate({.bytes = 1 + random.below(20000), .alignment = alignment})) live.push_back(*block);
      } else if (what < 95 && !live.empty()) {
        std::swap(live[random.below(live.size())], live.back());
        random.one_in(8) ? memory->deallocate_now(live.back()) : memory->deallocate(live.back());
        live.pop_back();
      } else if (what == 95) {
        memory->trim(random.below(200000));
      } else if (what == 96) {
        holds.push_back(memory->hold());
      } else if (!holds.empty()) {
        holds.pop_back();
      }
      std::size_t in_use = 0;
      for (const Block& block : live) in_use += block.bytes;
      ASSERT_EQ(memory->stats().in_use_bytes, in_use);
      ASSERT_EQ(memory->audit(), "") << "step " << i << " from seed " << seed();
    }
    holds.clear();
    for (const Block& block : live) memory->deallocate(block);
    memory->release_cached();
    EXPECT_EQ(memory->stats().committed_bytes, 0U);
  }
  did(std::to_string(steps) + " operations from seed " + std::to_string(seed()));
}

// Host memory with room for one block, whose frees can be blocked.
class Narrow : public Backend {
 public:
  explicit Narrow(Device device) : Backend(device) {
    properties_ = {.description = "one block",
                   .unit_bytes = 4096,
                   .alignment = 64,
                   .max_alignment = 4096,
                   .abilities = {.host_access = true, .fork_safe = true}};
  }
  const BackendProperties& properties() const noexcept override { return properties_; }
  MemoryInfo memory_info() const override { return {1_MiB, 0, false}; }
  Result<void*> reserve(std::size_t, std::size_t) noexcept override { return kNever; }
  Status commit(void*, std::size_t) noexcept override { return kNever; }
  Status decommit(void*, std::size_t) noexcept override { return kNever; }
  Status release(void*, std::size_t) noexcept override { return kNever; }
  Status copy(const Transfer&, StreamRef) noexcept override { return kNever; }
  Status fill(void*, std::size_t, std::span<const std::byte>, StreamRef) noexcept override { return kNever; }

  Result<void*> allocate(std::size_t, std::size_t) noexcept override {
    if (!full.exchange(true)) return static_cast<void*>(memory_);
    ++refused;
    return Failure{ErrorCode::out_of_memory, 0, "there is room for one"};
  }
  void free(void*, std::size_t, std::size_t) noexcept override {
    freeing = true;
    while (held_up) std::this_thread::yield();
    full = false;
  }

  std::atomic<bool> full{false};
  std::atomic<int> refused{0};
  std::atomic<bool> freeing{false};
  std::atomic<bool> held_up{false};

 private:
  static constexpr Failure kNever{ErrorCode::unsupported, 0, "blocks alone"};
  BackendProperties properties_;
  alignas(4096) std::byte memory_[4096];
};

Narrow& narrow_backend() {
  struct Factory : BackendFactory {
    int count() override { return 1; }
    std::string unavailable_reason() override { return ""; }
    std::unique_ptr<Backend> make(Device device) override { return std::make_unique<Narrow>(device); }
  };
  static const bool registered = (register_backend("narrow", std::make_unique<Factory>()), true);
  EXPECT_TRUE(registered);
  return static_cast<Narrow&>(backend("narrow"));
}

TEST(Rounded, WhoMeetsAFreeUnderWayWaitsForItBeforeGivingUp) {
  Narrow& device = narrow_backend();
  const auto memory = rounded("narrow");
  const Block block = memory->allocate({.bytes = 64});
  device.held_up = true;
  std::thread frees([&] { memory->deallocate_now(block); });
  while (!device.freeing) std::this_thread::yield();
  std::optional<Block> served;
  std::thread asks([&] { served = memory->try_allocate({.bytes = 4096}); });
  while (device.refused == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  device.held_up = false;
  frees.join();
  asks.join();
  ASSERT_TRUE(served.has_value());
  memory->deallocate_now(*served);
}

TEST(Rounded, AChildForkedDuringAFreeWaitsForNobody) {
  Narrow& device = narrow_backend();
  const auto memory = rounded("narrow", {.limit_bytes = 4096});
  const Block block = memory->allocate({.bytes = 64});
  device.freeing = false;
  device.held_up = true;
  std::thread frees([&] { memory->deallocate_now(block); });
  while (!device.freeing) std::this_thread::yield();
  EXPECT_EQ(status_of_child([&] { return !memory->try_allocate({.bytes = 4096}).has_value() && memory->audit().empty(); }), 0);
  device.held_up = false;
  frees.join();
}

// Each thread has a bucket of its own, and the device has room for one block of each: caches must be released
// for other threads to be served.
TEST(Rounded, ThreadsThatFillADeviceTogetherAreServed) {
  const Device device = quiet_sim(1_MiB);
  const auto memory = rounded(device);
  const std::uint64_t rounds = scaled(2000, 200);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        const auto block = memory->try_allocate({.bytes = 64_KiB << t});
        if (block) memory->deallocate(*block);
        if (i % 16 == 0) memory->trim(0);
        const auto large = memory->try_allocate({.bytes = 128_KiB << t});
        if (large) memory->deallocate_now(*large);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory->audit(), "");
  EXPECT_EQ(memory->stats().failures, 0U) << "128 + 256 + 512 KiB are always there";
  memory->release_cached();
  EXPECT_EQ(sim_control(device).committed_bytes(), 0U);
}

}  // namespace
}  // namespace berth::testing

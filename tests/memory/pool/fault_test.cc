// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "os/inject.h"
#include "support/everything.h"
#include "support/heap_faults.h"
#include "support/misuse_log.h"
#include "support/scale.h"

// The nth failure, for the pool: a scenario runs again and again, and each time the next allocation from the
// heap, device operation or system call fails. Live blocks keep their bytes, nothing leaks, and the pool stays
// consistent and usable.
namespace berth::testing {

using namespace internal;
namespace {

constexpr std::size_t kLonger = 1_MiB;

struct Kept {
  Block block;
  std::uint64_t value;
};

class PoolWorld {
 public:
  explicit PoolWorld(Device device) : PoolWorld(device, {.limit_bytes = 24_MiB}) {}
  PoolWorld(Device device, const PoolOptions& options) : device_(device), memory_(pool(device, options)), stream_(make_stream(device)) {
    blocks_.reserve(1000);
    for (const std::size_t bytes : {64U, 5000U, 100'000U, 700'000U}) keep(memory_->allocate({.bytes = bytes}));
  }
  ~PoolWorld() {
    for (const Kept& kept : kept_) memory_->deallocate(kept.block);
    EXPECT_EQ(memory_->stats().live_blocks, 0U);
  }
  PoolWorld(const PoolWorld&) = delete;
  PoolWorld& operator=(const PoolWorld&) = delete;

  // Requests of all kinds until the limit is reached, with holes, so that pages move; then everything is freed.
  // A failure does not end the scenario: a request that was refused is not freed.
  void scenario() {
    std::vector<Block>& blocks = blocks_;
    const auto take = [&](const Request& request) {
      try {
        if (const auto block = memory_->try_allocate(request)) blocks.push_back(*block);
      } catch (const DeviceError&) {
      }
    };
    for (const std::size_t bytes : {1U, 100U, 3000U, 17'000U, 60'000U, 128'000U}) {
      for (int i = 0; i < 6; ++i) take({.bytes = bytes});
      take({.bytes = bytes, .alignment = 8192});
      take({.bytes = bytes, .stream = stream_});
    }
    for (int i = 0; i < 16; ++i) take({.bytes = 900'000, .stream = i % 4 == 0 ? StreamRef(stream_) : StreamRef()});
    give_every_second(blocks);
    for (int i = 0; i < 3; ++i) take({.bytes = 3_MiB});
    fill_busy_holes(take);
    take({.bytes = 64_MiB});
    try {
      memory_->reserve(2_MiB);
    } catch (const Error&) {
    }
    try {
      memory_->allocate({.bytes = 64_MiB});
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {
    }
    give_every_second(blocks);
    memory_->trim(1_MiB);
    for (int i = 0; i < 4; ++i) take({.bytes = 2_MiB});
    for (const Block& block : blocks) memory_->deallocate(block);
    blocks.clear();
    memory_->trim(0);
  }

  void expect_unchanged() const {
    EXPECT_EQ(memory_->audit(), "");
    const Stats now = memory_->stats();
    EXPECT_EQ(now.live_blocks, kept_.size()) << "a block was lost";
    EXPECT_EQ(now.in_use_bytes + now.cached_bytes, now.committed_bytes);
    if (device_.kind_name() == "sim") {
      EXPECT_EQ(sim_control(device_).committed_bytes(), now.committed_bytes) << "memory was lost at the device";
    }
    for (const Kept& kept : kept_) {
      std::uint64_t found = 0;
      const Transfer look{
          .target = &found, .target_device = {}, .source = kept.block.data, .source_device = device_, .bytes = sizeof found};
      EXPECT_TRUE(memory_->backend().copy(look, {}).ok());
      EXPECT_EQ(found, kept.value) << "a block that lived was changed";
    }
  }

  Allocator& memory() { return *memory_; }

 private:
  void keep(const Block& block) {
    const Kept kept{block, 0x1234'5678'9abc'def0U + kept_.size()};
    const Status filled = memory_->backend().fill(block.data, block.bytes / 8 * 8, std::as_bytes(std::span(&kept.value, 1)), {});
    EXPECT_TRUE(filled.ok());
    kept_.push_back(kept);
  }

  // Blocks of a stream until the pool is full; then a longer one, where every second of them was, while work of
  // the stream may be pending there.
  template <class Take>
  void fill_busy_holes(const Take& take) {
    const std::size_t first = blocks_.size();
    std::size_t before = 0;
    do {
      before = blocks_.size();
      take({.bytes = 400'000, .stream = stream_});
    } while (blocks_.size() > before);
    try {
      stream_.enqueue([] {});
    } catch (const std::bad_alloc&) {
    }
    std::size_t left = first;
    for (std::size_t i = first; i < blocks_.size(); ++i) {
      if ((i - first) % 2 == 0)
        memory_->deallocate(blocks_[i]);
      else
        blocks_[left++] = blocks_[i];
    }
    blocks_.resize(left);
    for (int i = 0; i < 3; ++i) take({.bytes = kLonger, .stream = stream_});
    for (; blocks_.size() > first; blocks_.pop_back()) memory_->deallocate(blocks_.back());
    try {
      stream_.synchronize();
    } catch (const std::bad_alloc&) {
    }
  }

  void give_every_second(std::vector<Block>& blocks) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % 2 == 0)
        blocks[left++] = blocks[i];
      else
        i % 6 == 1 ? memory_->deallocate_now(blocks[i]) : memory_->deallocate(blocks[i]);
    }
    blocks.resize(left);
  }

  Device device_;
  std::shared_ptr<Allocator> memory_;
  Stream stream_;
  std::vector<Kept> kept_;
  std::vector<Block> blocks_;  // of the scenario; its capacity is reserved
};

// Runs `attempt(nth)` for nth = 1, 2, ... until it says that the nth failure did not happen.
void sweep(PoolWorld& world, const std::string& what, const std::function<bool(std::uint64_t nth)>& attempt) {
  const MisuseLog log;
  world.scenario();
  std::uint64_t nth = 1;
  for (; attempt(nth); ++nth) {
    world.expect_unchanged();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "after failing " << what << " number " << nth;
  }
  world.expect_unchanged();
  EXPECT_TRUE(log.reported().empty());
  EXPECT_GT(nth, 3U) << "the scenario has too little of " << what;
  did("failed each of " + std::to_string(nth - 1) + " " + what);
}

void of_device(SimOperation operation, ErrorCode code, const std::string& what) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  PoolWorld world(device);
  SimControl& control = sim_control(device);
  sweep(world, what, [&](std::uint64_t nth) {
    const std::uint64_t before = control.count(operation);
    control.fail_after(operation, nth, code);
    world.scenario();
    control.clear_faults();
    return control.count(operation) - before >= nth;
  });
}

TEST(PoolNthFailure, OfCommitChangesNothing) { of_device(SimOperation::commit, ErrorCode::out_of_memory, "commits"); }
TEST(PoolNthFailure, OfCommitWithAnErrorChangesNothing) { of_device(SimOperation::commit, ErrorCode::device_error, "commits"); }
TEST(PoolNthFailure, OfMoveChangesNothing) { of_device(SimOperation::move, ErrorCode::device_error, "moves"); }
TEST(PoolNthFailure, OfMovesOfPagesInUseChangesNothing) {
  of_device(SimOperation::begin_move, ErrorCode::device_error, "moves of pages in use");
}
TEST(PoolNthFailure, OfTheirEndsChangesNothing) { of_device(SimOperation::end_move, ErrorCode::device_error, "ends of moves"); }
TEST(PoolNthFailure, OfDecommitChangesNothing) { of_device(SimOperation::decommit, ErrorCode::device_error, "decommits"); }

// Where pages cannot move, they are decommitted and committed anew, and that may fail halfway.
TEST(PoolNthFailure, OfCommitWherePagesCannotMove) {
  const Device device = make_sim({.capacity_bytes = 24_MiB, .background = false});
  PoolWorld world(device);
  SimControl& control = sim_control(device);
  for (const SimOperation operation : {SimOperation::commit, SimOperation::decommit}) {
    sweep(world, "operations without moves", [&](std::uint64_t nth) {
      const std::uint64_t before = control.count(operation);
      control.fail_always(SimOperation::move);
      control.fail_after(operation, nth, ErrorCode::device_error);
      world.scenario();
      control.clear_faults();
      return control.count(operation) - before >= nth;
    });
  }
}

TEST(PoolNthFailure, OfReserveIsRefusedAndTheNextRequestServed) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  SimControl& control = sim_control(device);
  const auto memory = pool(device);
  const std::size_t reserved = control.reserved_bytes();
  control.fail_always(SimOperation::reserve, ErrorCode::out_of_memory);
  EXPECT_FALSE(memory->try_allocate({.bytes = 64}));
  EXPECT_FALSE(memory->try_allocate({.bytes = 1_MiB}));
  EXPECT_EQ(control.reserved_bytes(), reserved);
  EXPECT_EQ(memory->stats().failures, 2U);
  control.clear_faults();
  for (const std::size_t bytes : {64U, 1'000'000U}) {
    const auto block = memory->try_allocate({.bytes = bytes});
    ASSERT_TRUE(block);
    memory->deallocate(*block);
  }
  EXPECT_EQ(memory->audit(), "");
}

TEST(PoolNthFailure, ADeviceThatRefusesEverythingIsNotAskedForEver) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  SimControl& control = sim_control(device);
  PoolWorld world(device);
  for (const SimOperation operation : {SimOperation::commit, SimOperation::decommit, SimOperation::move}) {
    control.fail_always(operation, operation == SimOperation::commit ? ErrorCode::out_of_memory : ErrorCode::device_error);
    world.scenario();
    control.clear_faults();
    world.expect_unchanged();
    world.scenario();
    world.expect_unchanged();
  }
}

TEST(PoolNthFailure, ALostDeviceIsLeftAlone) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const auto memory = pool(device);
  const Block small = memory->allocate({.bytes = 64});
  const Block large = memory->allocate({.bytes = 1_MiB});
  sim_control(device).lose();
  EXPECT_THROW(memory->allocate({.bytes = 8_MiB}), DeviceError);
  memory->deallocate(small);
  memory->deallocate_now(large);
  memory->trim(0);
  EXPECT_EQ(memory->stats().live_blocks, 0U);
}

// Every allocation from the heap fails in turn, also those of error reports.
TEST(PoolNthFailure, OfOperatorNewChangesNothing) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  PoolWorld world(device);
  sweep(world, "uses of the heap", [&](std::uint64_t nth) {
    const FailNthNew fault(nth);
    world.scenario();
    return fault.happened();
  });
}

// The same where some blocks come from regions: 900,000 bytes do. Also in the middle of dissolving them.
TEST(PoolNthFailure, OfOperatorNewWithRegionsChangesNothing) {
  const Device device = make_sim({.capacity_bytes = 256_MiB, .background = false});
  PoolWorld world(device, {.limit_bytes = 128_MiB, .region_waits = 0});
  sweep(world, "uses of the heap", [&](std::uint64_t nth) {
    const FailNthNew fault(nth);
    world.scenario();
    return fault.happened();
  });
}

// The same for a new pool each time, with nothing of the test's own on the heap.
TEST(PoolNthFailure, OfOperatorNewInAFreshPoolChangesNothing) {
  for (const bool on_host : {true, false}) {
    const Device device = on_host ? Device() : make_sim({.capacity_bytes = 64_MiB, .background = false});
    const Stream stream = make_stream(device);
    std::uint64_t nth = 1;
    for (bool happened = true; happened; ++nth) {
      const auto memory = pool(device);
      std::array<std::optional<Block>, 12> blocks;
      {
        const FailNthNew fault(nth);
        std::size_t i = 0;
        for (const std::size_t bytes : {64U, 100'000U, 1'000'000U}) {
          for (const StreamRef on : {StreamRef(), StreamRef(stream)}) {
            blocks[i++] = memory->try_allocate({.bytes = bytes, .stream = on});
            blocks[i++] = memory->try_allocate({.bytes = bytes, .alignment = 4096, .stream = on});
          }
        }
        for (std::size_t k = 0; k < blocks.size(); k += 2) {
          if (blocks[k]) memory->deallocate(*blocks[k]);
          blocks[k].reset();
        }
        memory->trim(0);
        happened = fault.happened();
      }
      std::uint64_t live = 0;
      for (const auto& block : blocks) live += block ? 1 : 0;
      ASSERT_EQ(memory->audit(), "") << "after failing number " << nth;
      ASSERT_EQ(memory->stats().live_blocks, live) << "after failing number " << nth;
      const auto again = memory->try_allocate({.bytes = 64, .stream = stream});
      ASSERT_TRUE(again) << "after failing number " << nth;
      memory->deallocate(*again);
      for (const auto& block : blocks) {
        if (block) memory->deallocate(*block);
      }
      ASSERT_EQ(memory->stats().live_blocks, 0U);
      stream.synchronize();
    }
    EXPECT_GT(nth, 5U);
    did("failed each of " + std::to_string(nth - 1) + " uses of the heap on " + device.to_string());
  }
}

std::atomic<int> g_countdown{0};

TEST(PoolNthFailure, OfEverySystemCallChangesNothing) {
  PoolWorld world{Device()};
  sweep(world, "system calls", [&](std::uint64_t nth) {
    g_countdown = static_cast<int>(nth);
    os::set_injector([](std::string_view call) noexcept { return call != "munmap" && --g_countdown == 0 ? ENOMEM : 0; });
    world.scenario();
    os::set_injector(nullptr);
    return g_countdown <= 0;
  });
}

// The kernel limits the mappings of a process, and mremap fails at the limit. The pages are then decommitted
// and committed anew.
TEST(PoolWithoutMoves, APoolAtTheKernelsLimitOnMappingsStillFillsItsHoles) {
  static std::atomic<int> refusals{0};
  refusals = 0;
  const auto memory = pool("cpu", {.limit_bytes = 64_MiB});
  std::vector<Block> blocks;
  for (unsigned char i = 0; i < 16; ++i) {
    blocks.push_back(memory->allocate({.bytes = 4_MiB}));
    std::memset(blocks.back().data, i, 4_MiB);
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) memory->deallocate(blocks[i]);
  os::set_injector([](std::string_view call) noexcept { return call == "mremap" ? (++refusals, ENOMEM) : 0; });
  const auto large = memory->try_allocate({.bytes = 32_MiB});
  os::set_injector(nullptr);
  ASSERT_TRUE(large) << "eight holes make one block";
  EXPECT_GT(refusals, 0) << "nothing was moved";
  std::memset(large->data, 99, large->bytes);
  for (std::size_t i = 1; i < blocks.size(); i += 2) {
    const auto* const bytes = static_cast<const unsigned char*>(blocks[i].data);
    for (std::size_t at = 0; at < 4_MiB; at += 4096) ASSERT_EQ(bytes[at], i);
    memory->deallocate(blocks[i]);
  }
  EXPECT_LE(memory->stats().peak_committed_bytes, 64_MiB);
  memory->deallocate(*large);
  EXPECT_EQ(memory->audit(), "");
}

}  // namespace
}  // namespace berth::testing

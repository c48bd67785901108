// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "support/everything.h"
#include "support/scale.h"

// Random programs of one thread over several streams, each on a simulated device that runs the work in an order
// of its own: no block is handed out while work that was enqueued may still write to it.
namespace berth::testing {

using namespace internal;
namespace {

// The allocator under test, and what the program tells it.
struct Rules {
  const char* strategy = "pool";
  bool tells_streams = true;  // which stream a request is for
  bool tells_uses = true;     // which other streams use the block
};

// Random legal programs: each block is filled in its stream, read in its stream just before it is freed, and
// freed without waiting. Some are also read by another stream, which was told to wait for the fill. If the
// allocator hands memory out too early, a read sees the fill of another block.
class Schedule {
 public:
  Schedule(Device device, std::uint64_t seed, std::size_t capacity, Rules rules)
      : device_(device), memory_(make_allocator(rules.strategy, device)), random_(seed), capacity_(capacity), rules_(rules) {
    for (std::size_t i = 0; i < 1 + random_.below(4); ++i) streams_.push_back(make_stream(device));
    streams_.emplace_back();
  }

  void run(std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) step();
    while (!live_.empty()) free_one();
    for (const Stream& stream : streams_) stream.synchronize();
  }
  ~Schedule() {
    for (const Stream& stream : streams_) {
      try {
        stream.synchronize();  // before its buffers are destroyed
      } catch (const Error&) {
      }
    }
  }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // How many blocks were found overwritten.
  std::size_t overwritten() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        looks_, [](const auto& look) { return std::ranges::any_of(look->seen, [&](std::uint64_t seen) { return seen != look->value; }); }));
  }
  const Allocator& memory() const { return *memory_; }
  std::size_t refused_without_need = 0;

 private:
  struct Live {
    Block block;
    std::size_t stream;
    std::uint64_t value;
  };
  struct Look {
    std::uint64_t value;
    std::array<std::uint64_t, 2> seen{};
  };

  void step() {
    switch (random_.below(16)) {
      case 0: streams_[any_stream()].synchronize(); return;
      case 1: streams_[any_stream()].wait(streams_[any_stream()].record()); return;
      case 2: (void)streams_[any_stream()].record().query(); return;
      case 3: memory_->trim(random_.below(2) * 1_MiB); return;
      default: live_.empty() || random_.below(5) < 3 ? allocate() : free_one(); return;
    }
  }

  std::size_t any_stream() { return random_.below(streams_.size()); }

  void allocate() {
    const std::size_t stream = any_stream();
    const std::size_t most = random_.one_in(2) ? 8_KiB : random_.one_in(2) ? 200_KiB : 1_MiB;
    const std::size_t bytes = 32 + random_.below(most) / 16 * 16;
    const auto block = memory_->try_allocate({.bytes = bytes, .stream = rules_.tells_streams ? StreamRef(streams_[stream]) : StreamRef()});
    if (!block) {
      // Not a half: on so small a device a few nearly empty slabs are a good part of the memory.
      if (memory_->stats().in_use_bytes + bytes < capacity_ / 4) ++refused_without_need;
      if (!live_.empty()) free_one();
      return;
    }
    const Live live{*block, stream, random_.next()};
    std::array<std::uint64_t, 2> pattern{live.value, live.value};
    // The ends only: the simulated device is slow.
    const std::size_t part = std::min<std::size_t>(bytes, 512);
    for (const std::size_t from : {std::size_t{0}, bytes - part}) {
      auto* const at = static_cast<std::byte*>(block->data) + from;
      ASSERT_TRUE(memory_->backend().fill(at, part, std::as_bytes(std::span(pattern)), streams_[stream]).ok());
    }
    live_.push_back(live);
  }

  void free_one() {
    std::swap(live_[random_.below(live_.size())], live_.back());
    const Live live = live_.back();
    live_.pop_back();
    if (random_.one_in(3)) look_elsewhere(live);
    look(live, streams_[live.stream]);
    memory_->deallocate(live.block);
  }

  // Another stream reads it, after the fill.
  void look_elsewhere(const Live& live) {
    const Stream& other = streams_[any_stream()];
    if (!other || other.id() == streams_[live.stream].id()) return;
    other.wait(streams_[live.stream].record());
    look(live, other);
    if (rules_.tells_uses) memory_->used_on(live.block, other);
  }

  void look(const Live& live, const Stream& stream) {
    looks_.push_back(std::make_unique<Look>(Look{.value = live.value}));
    const auto* const begin = static_cast<const std::byte*>(live.block.data);
    const std::byte* const at[] = {begin, begin + live.block.bytes - 16};
    for (std::size_t i = 0; i < 2; ++i) {
      const Transfer transfer{
          .target = &looks_.back()->seen[i], .target_device = {}, .source = at[i], .source_device = device_, .bytes = 8};
      ASSERT_TRUE(memory_->backend().copy(transfer, stream).ok());
    }
  }

  Device device_;
  std::shared_ptr<Allocator> memory_;
  Random random_;
  std::size_t capacity_;
  Rules rules_;
  std::vector<Stream> streams_;
  std::vector<Live> live_;
  std::vector<std::unique_ptr<Look>> looks_;
};

struct Found {
  std::uint64_t overwritten = 0;
  std::uint64_t refused = 0;
  std::uint64_t echoes = 0;  // pages that moved while work on them was pending
};

Found run_schedules(std::uint64_t count, Rules rules) {
  constexpr std::size_t kCapacity = 4_MiB;
  std::vector<Device> devices;
  for (std::uint64_t i = 0; i < 8; ++i) {
    devices.push_back(make_sim({.capacity_bytes = i % 2 == 0 ? kCapacity : 4 * kCapacity,
                                .page_bytes = 64_KiB,
                                .seed = seed() + i,
                                .piece_bytes = i % 4 < 2 ? 0 : 256_KiB,
                                .background = false}));
  }
  Found found;
  for (std::uint64_t i = 0; i < count && !::testing::Test::HasFatalFailure(); ++i) {
    Schedule schedule(devices[i % devices.size()], seed() + i, kCapacity, rules);
    try {
      schedule.run(30 + i % 30);
      found.overwritten += schedule.overwritten();
    } catch (const DeviceError& error) {  // the memory was even decommitted
      EXPECT_FALSE(rules.tells_streams && rules.tells_uses) << error.what();
      ++found.overwritten;
    }
    found.refused += schedule.refused_without_need;
    if (i % 16 == 0) {
      EXPECT_EQ(schedule.memory().audit(), "") << "schedule " << i;
    }
  }
  for (const Device device : devices) found.echoes += sim_control(device).count(SimOperation::begin_move);
  return found;
}

TEST(PoolStreams, NoScheduleSeesABlockWrittenOver) {
  const std::uint64_t count = scaled(100'000, 200);
  const Found found = run_schedules(count, {});
  EXPECT_EQ(found.overwritten, 0U);
  EXPECT_EQ(found.refused, 0U) << "requests were refused though most of the device was free";
  EXPECT_GT(found.echoes, 0U);
  did(std::to_string(count) + " schedules, " + std::to_string(found.echoes) + " moves of pages in use, seed " + std::to_string(seed()));
}

// The schedules can find such a defect: told of no streams, the pool hands memory on at once.
TEST(PoolStreams, SchedulesFindBlocksThatAreHandedOutTooEarly) { EXPECT_GT(run_schedules(1000, {.tells_streams = false}).overwritten, 0U); }
TEST(PoolStreams, SchedulesFindUsesThatWereForgotten) { EXPECT_GT(run_schedules(1000, {.tells_uses = false}).overwritten, 0U); }

class SchedulesOf : public ::testing::TestWithParam<const char*> {};

TEST_P(SchedulesOf, SeeNoBlockWrittenOver) {
  const std::uint64_t count = scaled(20'000, 100);
  EXPECT_EQ(run_schedules(count, {.strategy = GetParam()}).overwritten, 0U);
  did(std::to_string(count) + " schedules, seed " + std::to_string(seed()));
}
TEST_P(SchedulesOf, FindUsesThatWereForgotten) {
  EXPECT_GT(run_schedules(1000, {.strategy = GetParam(), .tells_uses = false}).overwritten, 0U);
}

INSTANTIATE_TEST_SUITE_P(Other, SchedulesOf, ::testing::Values("rounded", "exact", "direct"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "berth/record/trace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/random.h"
#include "os/inject.h"
#include "os/system.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/heap_faults.h"

namespace berth::testing {

using namespace internal;
namespace {

using enum TraceEvent::Operation;

class TraceFile : public ::testing::Test {
 protected:
  void TearDown() override {
    stop_trace();
    std::filesystem::remove(path_);
  }

  Trace read() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return read_trace(bytes.str(), path_);
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("berth_trace_" + std::to_string(os::process_id()) + ".trace")).string();
};

// The events that must be read back, apart from their time.
struct Log {
  std::vector<TraceEvent> events;

  Block allocate(Allocator& from, Request request) {
    const Block block = from.allocate(request);
    events.push_back({TraceEvent::Operation::allocate, block.serial, block.bytes, block.stream_id, 0, block.allocator_id});
    return block;
  }
  void free(Allocator& to, const Block& block) {
    events.push_back({TraceEvent::Operation::free, block.serial, 0, 0, 0, block.allocator_id});
    to.deallocate(block);
  }
};

std::vector<TraceEvent> without_time(std::vector<TraceEvent> events) {
  for (TraceEvent& event : events) event.time_ns = 0;
  return events;
}

TEST_F(TraceFile, IsReadBackAsItHappened) {
  const Device sim = make_sim({.capacity_bytes = 16_TiB, .page_bytes = 2_MiB});
  const std::shared_ptr<Allocator> memory[] = {direct("cpu"), direct(sim), limit(direct("cpu"), 1_GiB)};
  const Stream streams[] = {Stream(), make_stream(sim), make_stream(sim)};
  Log log;
  Random random(7);
  std::vector<std::pair<Allocator*, Block>> live;
  const std::uint64_t begin = os::steady_time_ns();
  start_trace(path_);
  EXPECT_TRUE(is_tracing());
  for (int i = 0; i < 50000; ++i) {
    if (live.size() > 100 || (!live.empty() && random.one_in(2))) {
      std::swap(live[random.below(live.size())], live.back());
      log.free(*live.back().first, live.back().second);
      live.pop_back();
    } else if (Allocator& from = *memory[random.below(3)]; from.device() == sim) {
      // More than a word holds, or less.
      const std::size_t bytes = random.one_in(20) ? 600_MiB : 1 + random.below(1_MiB);
      live.emplace_back(&from, log.allocate(from, {.bytes = bytes, .stream = streams[random.below(3)]}));
    } else {
      live.emplace_back(&from, log.allocate(from, {.bytes = 1 + random.below(5000)}));
    }
  }
  const TraceSummary summary = stop_trace();
  EXPECT_FALSE(is_tracing());
  for (const auto& [from, block] : live) from->deallocate(block);
  EXPECT_EQ(summary.events, 50000U);
  EXPECT_EQ(summary.dropped, 0U);
  EXPECT_EQ(summary.bytes, std::filesystem::file_size(path_));
  const Trace trace = read();
  EXPECT_TRUE(trace.complete);
  EXPECT_EQ(trace.unpaired, 0U);
  EXPECT_EQ(without_time(trace.events), log.events);
  EXPECT_TRUE(std::ranges::is_sorted(trace.events, {}, &TraceEvent::time_ns));
  EXPECT_GE(trace.events.front().time_ns, begin);
  EXPECT_LE(trace.events.back().time_ns, os::steady_time_ns());
}

std::string_view tag_of(const Trace& trace, std::size_t at) { return trace.words[trace.tags[at]]; }

TEST_F(TraceFile, KeepsTheTagOfEachBlock) {
  const std::shared_ptr<Allocator> memory[] = {pool("cpu"), direct("cpu")};
  const Tag never = "a word that names nothing";
  std::vector<std::string> expected;
  start_trace(path_);
  for (int i = 0; i < 40000; ++i) {  // several chunks
    const std::string word = i % 7 == 0 ? "" : "tag " + std::to_string(i / 100 % 60);
    const TagScope outer(never);
    const TagScope scope{Tag(word)};
    Allocator& from = *memory[i % 2];
    from.deallocate(i % 3 == 0 ? from.allocate({.bytes = 64, .tag = "of the request"}) : from.allocate({.bytes = 64}));
    expected.push_back(i % 3 == 0 ? "of the request" : word);
  }
  stop_trace();
  const Trace trace = read();
  ASSERT_EQ(trace.tags.size(), trace.events.size());
  ASSERT_EQ(trace.events.size(), 2 * expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(trace.events[2 * i].operation, allocate);
    ASSERT_EQ(tag_of(trace, 2 * i), expected[i]) << i;
  }
  EXPECT_EQ(trace.words.size(), 62U) << "those that name something, and the empty one";
}

TEST_F(TraceFile, KeepsTheTagsOfThreadsThatShareWords) {
  const auto memory = pool("cpu");
  start_trace(path_);
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 20000; ++i) {  // the size encodes the word of the tag
        const std::size_t word = (i * (t + 1)) % 500;
        const TagScope scope(Tag("shared " + std::to_string(word)));
        memory->deallocate(memory->allocate({.bytes = word + 1}));
      }
    });
  }
  threads.clear();
  stop_trace();
  const Trace trace = read();
  ASSERT_EQ(trace.events.size(), 160000U);
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].operation != allocate) continue;
    ASSERT_EQ(tag_of(trace, i), "shared " + std::to_string(trace.events[i].bytes - 1));
  }
}

TEST_F(TraceFile, OfAProgramWithoutTagsHasNone) {
  start_trace(path_);
  const auto memory = direct("cpu");
  memory->deallocate(memory->allocate({.bytes = 64}));
  stop_trace();
  EXPECT_TRUE(read().tags.empty());
  EXPECT_TRUE(read().words.empty());
}

TEST_F(TraceFile, IsBoundedWithItsWords) {
  const auto memory = direct("cpu");
  start_trace(path_, {.limit_bytes = 200000});
  for (int i = 0; i < 3000; ++i) memory->deallocate(memory->allocate({.bytes = 64, .tag = Tag(std::string(200, 'x') + std::to_string(i))}));
  const TraceSummary summary = stop_trace();
  EXPECT_LE(std::filesystem::file_size(path_), 200000U);
  EXPECT_EQ(summary.events + summary.dropped, 6000U);
  EXPECT_GT(summary.dropped, 0U);
  const Trace trace = read();
  EXPECT_EQ(trace.events.size() + trace.unpaired, summary.events);
}

// Daemons close every descriptor that they may have inherited.
TEST_F(TraceFile, IsNotWrittenIntoAFileThatTheProgramOpenedInItsPlace) {
  const auto memory = direct("cpu");
  const int before = dup(0);
  close(before);  // frees the number that the trace will get
  start_trace(path_);
  close(before);
  const std::string strange = path_ + ".strange";
  const int stranger = open(strange.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ASSERT_EQ(stranger, before);
  for (int i = 0; i < 50000; ++i) memory->deallocate(memory->allocate({.bytes = 64}));
  const TraceSummary summary = stop_trace();
  EXPECT_EQ(summary.os_error, EBADF);
  EXPECT_EQ(summary.events + summary.dropped, 100000U);
  EXPECT_EQ(std::filesystem::file_size(strange), 0U);
  EXPECT_EQ(close(stranger), 0) << "nor is it closed";
  std::filesystem::remove(strange);
  EXPECT_FALSE(read().complete);
}

TEST_F(TraceFile, KeepsEventsOfThreadsThatLiveAndThatHaveEnded) {
  const auto memory = direct("cpu");
  start_trace(path_);
  std::vector<Block> handed(3000);
  std::thread([&] {
    for (Block& block : handed) block = memory->allocate({.bytes = 64});
  }).join();
  std::atomic<bool> freed{false};
  std::atomic<bool> stop{false};
  std::thread waits([&] {
    for (const Block& block : handed) memory->deallocate(block);
    freed = true;
    while (!stop) std::this_thread::yield();
  });
  while (!freed) std::this_thread::yield();
  const TraceSummary summary = stop_trace();
  stop = true;
  waits.join();
  EXPECT_EQ(summary.events, 6000U);
  const Trace trace = read();
  EXPECT_EQ(trace.events.size(), 6000U);
  EXPECT_EQ(trace.unpaired, 0U);
  EXPECT_LE(plan_replay(trace.events).blocks, 3000U);
}

TEST_F(TraceFile, BlocksThatWanderBetweenThreadsPair) {
  const auto memory = direct("cpu");
  std::array<std::atomic<Block*>, 64> shelf{};
  start_trace(path_);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t));
      for (int i = 0; i < 20000; ++i) {
        auto* const fresh = new Block(memory->allocate({.bytes = 16}));
        const std::unique_ptr<Block> old(shelf[random.below(shelf.size())].exchange(fresh));
        if (old != nullptr) memory->deallocate(*old);
      }
    });
  }
  threads.clear();
  for (std::atomic<Block*>& place : shelf) {
    const std::unique_ptr<Block> old(place.load());
    if (old != nullptr) memory->deallocate(*old);
  }
  EXPECT_EQ(stop_trace().events, 160000U);
  const Trace trace = read();
  EXPECT_EQ(trace.unpaired, 0U);
  EXPECT_EQ(trace.events.size(), 160000U);
  EXPECT_LT(plan_replay(trace.events).blocks, 2000U) << "the order of threads is kept roughly";
}

TEST_F(TraceFile, IsBoundedAndCountsWhatIsDropped) {
  const auto memory = direct("cpu");
  start_trace(path_, {.limit_bytes = 200000});
  for (int i = 0; i < 100000; ++i) memory->deallocate(memory->allocate({.bytes = 64}));
  const TraceSummary summary = stop_trace();
  EXPECT_LE(std::filesystem::file_size(path_), 200000U);
  EXPECT_GT(summary.events, 30000U);
  EXPECT_EQ(summary.events + summary.dropped, 200000U);
  const Trace trace = read();
  EXPECT_EQ(trace.dropped, summary.dropped);
  EXPECT_EQ(trace.events.size() + trace.unpaired, summary.events);
}

TEST_F(TraceFile, LeavesOutFreesOfWhatItHasNotSeen) {
  const auto memory = direct("cpu");
  const Block before = memory->allocate({.bytes = 64});
  start_trace(path_);
  const Block during = memory->allocate({.bytes = 100});
  memory->deallocate(before);
  stop_trace();
  memory->deallocate(during);
  const Trace trace = read();
  EXPECT_EQ(trace.unpaired, 1U);
  ASSERT_EQ(trace.events.size(), 1U);
  EXPECT_EQ(trace.events[0].bytes, 100U);
}

TEST_F(TraceFile, OneComesAfterAnother) {
  const auto memory = direct("cpu");
  for (int round = 0; round < 3; ++round) {
    start_trace(path_);
    for (int i = 0; i <= round; ++i) memory->deallocate(memory->allocate({.bytes = 64}));
    EXPECT_EQ(stop_trace().events, 2U * static_cast<unsigned>(round + 1));
    EXPECT_EQ(read().events.size(), 2U * static_cast<unsigned>(round + 1));
    memory->deallocate(memory->allocate({.bytes = 64}));
  }
  EXPECT_EQ(stop_trace().events, 0U) << "without a trace, nothing happens";
}

TEST_F(TraceFile, RefusesWhatMakesNoSense) {
  EXPECT_ERROR(start_trace(path_, {.limit_bytes = 1000}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(start_trace("/nowhere/at/all"), ArgumentError, ErrorCode::invalid_argument);
  start_trace(path_);
  EXPECT_ERROR(start_trace(path_ + "2"), AccessError, ErrorCode::busy);
  EXPECT_FALSE(std::filesystem::exists(path_ + "2"));
}

TEST_F(TraceFile, SinksSeeTheSameRecordsBesideIt) {
  struct Count : Sink {
    void on_record(const Record&) noexcept override { ++seen; }
    int seen = 0;
  };
  const auto count = std::make_shared<Count>();
  const auto memory = direct("cpu");
  const SinkAttachment attached = attach_sink(count);
  start_trace(path_);
  memory->deallocate(memory->allocate({.bytes = 64}));
  EXPECT_EQ(stop_trace().events, 2U);
  memory->deallocate(memory->allocate({.bytes = 64}));
  EXPECT_EQ(count->seen, 4);
}

int g_writes_left = 0;

TEST_F(TraceFile, AFullDiskCutsItShortAndHarmsNobody) {
  const auto memory = direct("cpu");
  start_trace(path_);
  g_writes_left = 25;
  os::set_injector([](std::string_view call) noexcept { return call == "write" && g_writes_left-- <= 0 ? ENOSPC : 0; });
  for (int i = 0; i < 100000; ++i) memory->deallocate(memory->allocate({.bytes = 64}));
  const TraceSummary summary = stop_trace();
  os::set_injector(nullptr);
  EXPECT_EQ(summary.os_error, ENOSPC);
  EXPECT_EQ(summary.events + summary.dropped, 200000U);
  const Trace trace = read();
  EXPECT_FALSE(trace.complete);
  EXPECT_EQ(trace.events.size() + trace.unpaired, summary.events);
  EXPECT_GT(summary.events, 20000U);
}

TEST_F(TraceFile, WithoutHeapForABufferEventsAreDropped) {
  start_trace(path_);
  std::thread([&] {
    const auto memory = direct("cpu");
    const Block first = memory->allocate({.bytes = 64});  // makes the buffer of this thread
    memory->deallocate(first);
  }).join();
  std::thread([&] {
    const auto memory = direct("cpu");
    memory->deallocate(Block{});
    std::uint64_t nth = 1;
    for (bool happened = true; happened; ++nth) {
      const FailNthNew fail(nth);
      const auto block = memory->try_allocate({.bytes = 64});
      happened = fail.happened();
      if (block) memory->deallocate(*block);
    }
  }).join();
  const TraceSummary summary = stop_trace();
  EXPECT_GE(summary.events, 4U);
  EXPECT_GE(summary.dropped, 1U);
}

}  // namespace
}  // namespace berth::testing

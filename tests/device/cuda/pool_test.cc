// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/random.h"
#include "device/cuda/device.h"
#include "support/scale.h"

// The pool on a real device: no other stream gets memory while work of a stream on it is pending.
namespace berth::testing {

using namespace internal;
namespace {

// Eight streams, blocks of all sizes, each written when it is allocated and checked before it is freed.
TEST(CudaPool, KeepsTheBytesOfEightStreamsApart) {
  BERTH_NEEDS_CUDA();
  const std::uint64_t operations = scaled(10'000'000, 20'000);
  const auto memory = pool("cuda:0", {.limit_bytes = 4_GiB});
  const Wrongs wrongs;
  std::array<Stream, 8> streams;
  for (Stream& stream : streams) stream = make_stream("cuda:0");
  struct Live {
    Block block;
    std::uint32_t value;
    std::size_t stream;
  };
  std::vector<Live> live;
  Random random(seed());
  bool launched = true;
  for (std::uint64_t i = 0; i < operations; ++i) {
    const bool grow = live.size() < 400 && (live.empty() || random.below(100) < 51);
    if (grow) {
      const std::size_t bytes = 64 + random.below(std::uint64_t{1} << (8 + random.below(16)));
      const std::size_t stream = random.below(streams.size());
      const Block block = memory->allocate({.bytes = bytes, .stream = streams[stream]});
      live.push_back({block, static_cast<std::uint32_t>(i), stream});
      launched = launched && launch_write_ends(block.data, bytes, live.back().value, cuda::native_stream(streams[stream]));
    } else {
      std::swap(live[random.below(live.size())], live.back());
      const Live& one = live.back();
      launched =
          launched && launch_check_ends(one.block.data, one.block.bytes, one.value, wrongs.get(), cuda::native_stream(streams[one.stream]));
      memory->deallocate(one.block);
      live.pop_back();
    }
    if (i % 100'000 == 0) {
      ASSERT_TRUE(launched);
      ASSERT_EQ(memory->audit(), "");
    }
  }
  for (const Live& one : live) memory->deallocate(one.block);
  for (const Stream& stream : streams) stream.synchronize();
  EXPECT_EQ(wrongs.count(), 0U);
  const Stats stats = memory->stats();
  did(std::to_string(operations) + " operations over 8 streams, " + std::to_string(stats.commits) + " commits, " +
      std::to_string(stats.decommits) + " decommits; seed " + std::to_string(seed()));
}

// A kernel owns a block that was freed on its stream, and writes to it when it is released from its spin.
// Meanwhile a request of another stream can be served only by pages from holes: those of its own stream, not
// the kernel's.
TEST(CudaPool, TakesNoPagesBackThatAKernelStillOwns) {
  BERTH_NEEDS_CUDA();
  const std::uint64_t rounds = scaled(1000, 20);
  const Wrongs wrongs;
  const Stream busy = make_stream("cuda:0");
  const Stream other = make_stream("cuda:0");
  HostWord go;
  std::uint64_t taken_back = 0;
  const auto memory = pool("cuda:0", {.limit_bytes = 24_MiB});
  for (std::uint64_t round = 0; round < rounds; ++round) {
    go.set(0);
    const auto value = static_cast<std::uint32_t>(round);
    std::array<Block, 4> blocks;
    for (Block& block : blocks) block = memory->allocate({.bytes = 4_MiB, .stream = other});
    const Block owned = memory->allocate({.bytes = 8_MiB, .stream = busy});
    ASSERT_TRUE(launch_spin(go.get(), cuda::native_stream(busy)));
    ASSERT_TRUE(launch_write(owned.data, owned.bytes, ~value, cuda::native_stream(busy)));
    memory->deallocate(owned);
    memory->deallocate(blocks[0]);
    memory->deallocate(blocks[2]);
    other.synchronize();
    const std::uint64_t before = memory->stats().decommits;
    const Block late = memory->allocate({.bytes = 8_MiB, .stream = other});
    taken_back += memory->stats().decommits - before;
    ASSERT_TRUE(launch_write(late.data, late.bytes, value, cuda::native_stream(other)));
    other.synchronize();
    EXPECT_FALSE(busy.record().query()) << "the kernel was waited for";
    go.set(1);
    busy.synchronize();
    ASSERT_TRUE(launch_check(late.data, late.bytes, value, wrongs.get(), cuda::native_stream(other)));
    other.synchronize();
    ASSERT_EQ(wrongs.count(), 0U) << "in round " << round;
    memory->deallocate(late);
    memory->deallocate(blocks[1]);
    memory->deallocate(blocks[3]);
    memory->release_cached();
    ASSERT_EQ(memory->audit(), "");
  }
  EXPECT_GT(taken_back, 0U);
  did(std::to_string(rounds) + " rounds, " + std::to_string(taken_back) + " pieces taken back");
}

// A kernel owns blocks that were freed on its stream. A later request of the same stream takes their pages at
// once, and later work of the stream runs after the kernel.
TEST(CudaPool, MovesPagesThatAKernelOfTheSameStreamStillOwns) {
  BERTH_NEEDS_CUDA();
  const std::uint64_t rounds = scaled(1000, 20);
  const Wrongs wrongs;
  const Stream stream = make_stream("cuda:0");
  CUstream_st* const native = cuda::native_stream(stream);
  HostWord go;
  std::uint64_t moved = 0;
  const auto memory = pool("cuda:0", {.limit_bytes = 24_MiB});
  for (std::uint64_t round = 0; round < rounds; ++round) {
    go.set(0);
    const auto value = static_cast<std::uint32_t>(round);
    std::array<Block, 6> blocks;
    for (Block& block : blocks) block = memory->allocate({.bytes = 4_MiB, .stream = stream});
    ASSERT_TRUE(launch_spin(go.get(), native));
    for (const Block& block : blocks) ASSERT_TRUE(launch_write(block.data, block.bytes, ~value, native));
    for (const std::size_t i : {0U, 2U}) memory->deallocate(blocks[i]);
    const std::uint64_t before = memory->stats().decommits;
    std::jthread rescue([&](const std::stop_token& over) {  // a request that waits for the kernel fails the
                                                            // test instead of hanging it
      for (int i = 0; i < 1000 && !over.stop_requested(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      go.set(1);
    });
    const Block late = memory->allocate({.bytes = 8_MiB, .stream = stream});
    EXPECT_FALSE(stream.record().query()) << "the kernel was waited for";
    moved += memory->stats().decommits - before;
    ASSERT_TRUE(launch_write(late.data, late.bytes, value, native));
    rescue.request_stop();
    rescue.join();
    stream.synchronize();
    ASSERT_TRUE(launch_check(late.data, late.bytes, value, wrongs.get(), native));
    for (const std::size_t i : {1U, 3U, 4U, 5U}) ASSERT_TRUE(launch_check(blocks[i].data, blocks[i].bytes, ~value, wrongs.get(), native));
    stream.synchronize();
    ASSERT_EQ(wrongs.count(), 0U) << "in round " << round;
    memory->deallocate(late);
    for (const std::size_t i : {1U, 3U, 4U, 5U}) memory->deallocate(blocks[i]);
    memory->release_cached();
    ASSERT_EQ(memory->audit(), "");
  }
  EXPECT_GT(moved, 0U);
  did(std::to_string(rounds) + " rounds, " + std::to_string(moved) + " pieces moved while a kernel used them");
}

// A word that is set after a moment, or at the end of the scope, so that what waits for it waits, and goes on.
class Later {
 public:
  Later(HostWord& word, std::chrono::milliseconds after)
      : thread_([&word, after](const std::stop_token& over) {
          const auto until = std::chrono::steady_clock::now() + after;
          while (!over.stop_requested() && std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          word.set(1);
        }) {}

 private:
  std::jthread thread_;
};

// What was freed before later work is another stream's as soon as the work before it is over: a kernel that spins behind
// the free is not waited for, and one that spins before it is.
TEST(CudaPool, WaitsForTheWorkBeforeAFreeAndForNoLaterWork) {
  BERTH_NEEDS_CUDA();
  const std::uint64_t rounds = scaled(500, 10);
  const Wrongs wrongs;
  const Stream a = make_stream("cuda:0");
  const Stream b = make_stream("cuda:0");
  HostWord go;
  const auto memory = pool("cuda:0", {.limit_bytes = 24_MiB});
  memory->deallocate(memory->allocate({.bytes = 1_MiB, .stream = b}));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const bool before = round % 2 == 0;
    go.set(0);
    const auto value = static_cast<std::uint32_t>(round);
    const Block first = memory->allocate({.bytes = 20_MiB, .stream = a});
    if (before) {
      ASSERT_TRUE(launch_spin(go.get(), cuda::native_stream(a)));
    }
    ASSERT_TRUE(launch_write(first.data, first.bytes, ~value, cuda::native_stream(a)));
    memory->deallocate(first);
    if (!before) {
      ASSERT_TRUE(launch_spin(go.get(), cuda::native_stream(a)));
    }
    {
      const Later rescue(go, before ? std::chrono::milliseconds(2) : std::chrono::milliseconds(1000));
      const auto asked = std::chrono::steady_clock::now();
      const Block second = memory->allocate({.bytes = 20_MiB, .stream = b});
      const bool waited = std::chrono::steady_clock::now() - asked > std::chrono::milliseconds(900);
      EXPECT_TRUE(before || !waited) << "later work was waited for";
      ASSERT_TRUE(launch_write(second.data, second.bytes, value, cuda::native_stream(b)));
      go.set(1);
      ASSERT_TRUE(launch_check(second.data, second.bytes, value, wrongs.get(), cuda::native_stream(b)));
      memory->deallocate(second);
    }
    a.synchronize();
    b.synchronize();
    ASSERT_EQ(wrongs.count(), 0U) << "in round " << round;
    ASSERT_EQ(memory->audit(), "");
  }
  did(std::to_string(rounds) + " rounds");
}

// Where little room is left, a piece is given back and made anew in two: not while a kernel uses it.
TEST(CudaPool, CutsPiecesBehindTheKernelsThatUseThem) {
  BERTH_NEEDS_CUDA();
  const std::uint64_t rounds = scaled(200, 5);
  const Wrongs wrongs;
  const Stream stream = make_stream("cuda:0");
  CUstream_st* const native = cuda::native_stream(stream);
  HostWord go;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto memory = pool("cuda:0", {.limit_bytes = 130_MiB});
    go.set(0);
    const auto value = static_cast<std::uint32_t>(round);
    const Block first = memory->allocate({.bytes = 64_MiB, .stream = stream});
    const Block between = memory->allocate({.bytes = 2_MiB, .stream = stream});
    const Block second = memory->allocate({.bytes = 64_MiB, .stream = stream});
    ASSERT_TRUE(launch_write(between.data, between.bytes, value, native));
    ASSERT_TRUE(launch_spin(go.get(), native));
    ASSERT_TRUE(launch_write(first.data, first.bytes, ~value, native));
    memory->deallocate(first);
    const Later rescue(go, std::chrono::milliseconds(2));
    const Block third = memory->allocate({.bytes = 34_MiB, .stream = stream});
    ASSERT_TRUE(launch_write(third.data, third.bytes, value, native));
    memory->deallocate(second);
    const auto all = memory->try_allocate({.bytes = 94_MiB, .stream = stream});
    ASSERT_TRUE(all) << "free memory was pinned";
    ASSERT_TRUE(launch_write(all->data, all->bytes, value + 1, native));
    ASSERT_TRUE(launch_check(all->data, all->bytes, value + 1, wrongs.get(), native));
    for (const Block& block : {between, third}) ASSERT_TRUE(launch_check(block.data, block.bytes, value, wrongs.get(), native));
    stream.synchronize();
    ASSERT_EQ(wrongs.count(), 0U) << "in round " << round;
    ASSERT_EQ(memory->audit(), "");
    for (const Block& block : {between, third, *all}) memory->deallocate(block);
  }
  did(std::to_string(rounds) + " rounds");
}

class Graph {
 public:
  explicit Graph(cudaGraph_t graph) : graph_(graph) { EXPECT_EQ(cudaGraphInstantiate(&ready_, graph, 0), cudaSuccess); }
  ~Graph() {
    cudaGraphExecDestroy(ready_);
    cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(CUstream_st* stream) { EXPECT_EQ(cudaGraphLaunch(ready_, stream), cudaSuccess); }

 private:
  cudaGraph_t graph_;
  cudaGraphExec_t ready_ = nullptr;
};

// Blocks that are allocated and freed during the capture belong to the graph at each launch, whatever the
// program does meanwhile.
TEST(CudaPool, ServesACaptureFromAPrivatePool) {
  BERTH_NEEDS_CUDA();
  const auto memory = pool("cuda:0");
  const auto mine = private_pool(memory, {.fixed_pages = true});
  const Wrongs wrongs;
  const Stream stream = make_stream("cuda:0");
  CUstream_st* const native = cuda::native_stream(stream);
  ASSERT_EQ(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal), cudaSuccess);
  for (std::uint32_t i = 0; i < 8; ++i) {
    const Block a = mine->allocate({.bytes = 1_MiB + i * 64_KiB, .stream = stream});
    const Block b = mine->allocate({.bytes = 4096 * (i + 1), .stream = stream});
    EXPECT_TRUE(launch_write(a.data, a.bytes, i, native));
    EXPECT_TRUE(launch_write(b.data, b.bytes, ~i, native));
    EXPECT_TRUE(launch_check(a.data, a.bytes, i, wrongs.get(), native));
    EXPECT_TRUE(launch_check(b.data, b.bytes, ~i, wrongs.get(), native));
    mine->deallocate(a);
    mine->deallocate(b);
  }
  EXPECT_THROW((void)memory->allocate({.bytes = 64_MiB, .stream = stream}), Error) << "and not from a pool that others use";
  cudaGraph_t captured = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(native, &captured), cudaSuccess) << "nothing has invalidated the capture";
  Graph graph(captured);
  for (std::uint32_t round = 0; round < 100; ++round) {
    graph.launch(native);
    const Block beside = memory->allocate({.bytes = 2_MiB, .stream = stream});
    ASSERT_TRUE(launch_write(beside.data, beside.bytes, round, native));
    ASSERT_TRUE(launch_check(beside.data, beside.bytes, round, wrongs.get(), native));
    memory->deallocate(beside);
    if (round % 10 == 0) memory->release_cached();
  }
  stream.synchronize();
  EXPECT_EQ(wrongs.count(), 0U);
}

// Another thread may use berth, and grow its pools, during a capture.
TEST(CudaPool, DoesNotDisturbACaptureElsewhere) {
  BERTH_NEEDS_CUDA();
  const Stream captured = make_stream("cuda:0");
  CUstream_st* const native = cuda::native_stream(captured);
  const auto memory = pool("cuda:0");
  const Block target = memory->allocate({.bytes = 1_MiB});
  ASSERT_EQ(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_TRUE(launch_write(target.data, target.bytes, 1, native));
  EXPECT_FALSE(captured.record().query());
  EXPECT_THROW(captured.synchronize(), DeviceError);
  EXPECT_THROW(captured.enqueue([] {}), DeviceError);
  std::jthread([&] {
    const Stream stream = make_stream("cuda:0");
    for (std::size_t i = 1; i <= 20; ++i) {
      const Block block = memory->allocate({.bytes = i * 3_MiB, .stream = stream});
      memory->deallocate(block);
      memory->release_cached();
    }
    (void)full({1024}, 1, DType::f32, "cuda:0").to("cpu");
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(native, &graph), cudaSuccess);
  if (graph != nullptr) cudaGraphDestroy(graph);
  memory->deallocate(target);
}

// ---- page-locked memory

TEST(Pinned, IsPageLockedWhereThereIsADevice) {
  BERTH_NEEDS_CUDA();
  EXPECT_TRUE(backend("pinned").properties().abilities.pinned);
  const auto memory = pool("pinned");
  const Block block = memory->allocate({.bytes = 40_MiB});
  cudaPointerAttributes attributes = {};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, block.data), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_TRUE(empty({1024}, DType::f32, "pinned").is_pinned());
  memory->deallocate(block);
  memory->release_cached();
  EXPECT_EQ(memory->stats().committed_bytes, 0U);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "berth/device/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "support/everything.h"

// Streams of the host, and copies in them. What all streams must do is in the conformance suite.
namespace berth::testing {
namespace {

TEST(Stream, OneFinishesWhileAnotherIsBlockedByAHostFunction) {
  const Stream blocked = make_stream("cpu");
  const Stream free = make_stream("cpu");
  std::promise<void> open;
  blocked.enqueue([gate = open.get_future().share()] { gate.wait(); });
  const Event behind = blocked.record();
  int ran = 0;
  free.enqueue([&] { ran = 1; });
  free.synchronize();
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(behind.query());
  open.set_value();
  behind.wait();
  EXPECT_TRUE(behind.query());
}

TEST(Stream, ANonBlockingCopyReturnsBeforeItsBlockedStreamRunsAndKeepsItsBuffers) {
  for (const char* device : {"cpu", "sim:0"}) {
    const Stream stream = make_stream("cpu");
    std::promise<void> open;
    stream.enqueue([gate = open.get_future().share()] { gate.wait(); });
    const auto tracked = track(direct("cpu"));
    std::vector<float> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    Storage source = from_data(values, {10, 100}, tracked);
    Storage target = zeros({100, 10}, DType::f64, device);
    const Event done = target.copy_from(source.transpose(0, 1), {.stream = stream, .non_blocking = true});
    EXPECT_FALSE(done.query());
    EXPECT_EQ(target.to("cpu").item<double>({5, 5}), 0.0) << "nothing has been copied yet";
    source = {};
    EXPECT_EQ(tracked->live().size(), 1U) << "the copy keeps its source";
    open.set_value();
    done.wait();
    const Storage seen = target.to("cpu");
    for (std::int64_t i = 0; i < 100; ++i) {
      for (std::int64_t j = 0; j < 10; ++j) ASSERT_EQ(seen.item<double>({i, j}), static_cast<double>(j * 100 + i));
    }
    stream.synchronize();
    EXPECT_TRUE(tracked->live().empty()) << "and lets it go when it is done";
  }
}

TEST(Stream, ATargetDroppedBeforeItsCopyRunsIsKeptToo) {
  const Stream stream = make_stream("cpu");
  std::promise<void> open;
  stream.enqueue([gate = open.get_future().share()] { gate.wait(); });
  const auto tracked = track(direct("cpu"));
  {
    const Storage target = empty({1000}, DType::f32, tracked);
    target.copy_from(full({1000}, 1, DType::i32, tracked), {.stream = stream, .non_blocking = true});
    target.fill(2, {.stream = stream, .non_blocking = true});
  }
  EXPECT_EQ(tracked->live().size(), 2U);
  open.set_value();
  stream.synchronize();
  EXPECT_TRUE(tracked->live().empty());
}

TEST(Stream, ABlockingCopyInAStreamIsOrderedAfterItsEarlierWork) {
  for (const char* device : {"cpu", "sim:0"}) {
    const Stream stream = make_stream(device);
    const Storage x = zeros({8}, DType::i32, "cpu");
    stream.enqueue([&] { x.fill(7); });
    const Storage y = x.to(device, {.stream = stream});
    const Storage z = y.clone({.stream = stream});
    EXPECT_EQ(z.to("cpu").item<std::int32_t>({3}), 7);
  }
}

TEST(Stream, NoStreamRunsAtOnce) {
  const Stream none;
  int ran = 0;
  none.enqueue([&] { ran = 1; });
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(none.record().query());
  none.wait(Event());
  none.synchronize();
  EXPECT_FALSE(static_cast<bool>(none));
  EXPECT_EQ(none.id(), 0U);
}

TEST(Stream, WorkMayDropTheLastHandleOfItsOwnStream) {
  auto stream = std::make_shared<Stream>(make_stream("cpu"));
  std::promise<void> dropped;
  Stream* const bare = stream.get();
  bare->enqueue([held = std::move(stream), &dropped]() mutable {
    held.reset();
    dropped.set_value();
  });
  dropped.get_future().wait();
}

TEST(Stream, WorkMayEnqueueMoreWork) {
  for (const char* device : {"cpu", "sim:0"}) {
    const Stream stream = make_stream(device);
    std::promise<int> result;
    stream.enqueue([&] { stream.enqueue([&] { result.set_value(42); }); });
    stream.synchronize();
    stream.synchronize();
    EXPECT_EQ(result.get_future().get(), 42);
  }
}

TEST(Stream, ManyThreadsMayShareOne) {
  const Stream stream = make_stream("cpu");
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) stream.enqueue([&] { ++ran; });
      stream.record().wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream.synchronize();
  EXPECT_EQ(ran, 800);
}

}  // namespace
}  // namespace berth::testing

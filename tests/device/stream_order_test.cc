// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "device/stream_clock.h"
#include "support/everything.h"

// What is known about the order between streams: the points of events, and the clocks that waits advance.
namespace berth::testing {

using namespace internal::device;
namespace {

class StreamOrder : public ::testing::TestWithParam<const char*> {
 protected:
  StreamOrder() : device_(std::string(GetParam()) == "sim" ? make_sim({.background = false}) : Device("cpu")) {}
  Stream stream() const { return make_stream(device_); }
  Device device_;
};

bool comes_after(const Stream& stream, const Event& event) { return stream.state()->comes_after(event.stream_id(), event.point()); }

TEST_P(StreamOrder, EventsSayWhoseTheyAreAndGrow) {
  const Stream a = stream();
  const Stream b = stream();
  const std::uint64_t before = next_point();
  const Event first = a.record();
  const Event second = b.enqueue([] {});
  const Event third = a.record();
  EXPECT_EQ(first.stream_id(), a.id());
  EXPECT_EQ(second.stream_id(), b.id());
  EXPECT_LE(before, first.point());
  EXPECT_LT(first.point(), second.point());
  EXPECT_LT(second.point(), third.point());
  EXPECT_LT(third.point(), next_point());
  EXPECT_EQ(Event().point(), 0U);
  EXPECT_EQ(Event().stream_id(), 0U);
  b.synchronize();
}

TEST_P(StreamOrder, AWaitOrdersWhatCameBeforeTheEventAndNoMore) {
  const Stream a = stream();
  const Stream b = stream();
  const Event early = a.record();
  const Event late = a.record();
  EXPECT_TRUE(comes_after(a, late)) << "a stream comes after itself";
  EXPECT_FALSE(comes_after(b, early));
  const std::uint64_t version = b.state()->clock_version();
  b.wait(early);
  EXPECT_GT(b.state()->clock_version(), version);
  EXPECT_TRUE(comes_after(b, early));
  EXPECT_FALSE(comes_after(b, late));
  EXPECT_FALSE(comes_after(a, b.record())) << "order has a direction";
  b.wait(late);
  EXPECT_TRUE(comes_after(b, late));
  const std::uint64_t after = b.state()->clock_version();
  b.wait(early);
  b.wait(Event());
  b.wait(b.record());
  EXPECT_EQ(b.state()->clock_version(), after) << "none of these is news";
}

TEST_P(StreamOrder, IsPassedOnByEventsThatCameLater) {
  const Stream a = stream();
  const Stream b = stream();
  const Stream c = stream();
  const Event of_a = a.record();
  const Event too_early = b.record();
  b.wait(of_a);
  const Event of_b = b.enqueue([] {});
  c.wait(too_early);
  EXPECT_FALSE(comes_after(c, of_a)) << "b was not told to wait before that event";
  c.wait(of_b);
  EXPECT_TRUE(comes_after(c, of_a));
  EXPECT_TRUE(comes_after(c, of_b));
  for (const Stream& each : {a, b, c}) each.synchronize();
}

TEST_P(StreamOrder, OfStreamsWaitedForLongAgoIsForgotten) {
  const Stream b = stream();
  std::vector<Event> events;
  for (std::size_t i = 0; i < StreamClock::kMost + 10; ++i) {
    const Stream a = stream();
    events.push_back(a.record());
    b.wait(events.back());
  }
  EXPECT_EQ(b.state()->clock()->entries().size(), StreamClock::kMost);
  EXPECT_TRUE(comes_after(b, events.back()));
  EXPECT_TRUE(comes_after(b, events[events.size() - StreamClock::kMost]));
  EXPECT_FALSE(comes_after(b, events.front())) << "which is safe, and bounds what a stream carries along";
  b.synchronize();
}

TEST_P(StreamOrder, WhatSomeoneHasSeenIsKnownToAll) {
  const Stream a = stream();
  const Stream b = stream();
  a.enqueue([] {});
  const Event first = a.record();
  EXPECT_LT(a.state()->done_point(), first.point());
  first.wait();
  EXPECT_GE(a.state()->done_point(), first.point());
  const Event second = a.enqueue([] {});
  EXPECT_LT(a.state()->done_point(), second.point());
  b.wait(second);
  const Event of_b = b.record();
  of_b.wait();
  EXPECT_GE(b.state()->done_point(), of_b.point());
  EXPECT_GE(a.state()->done_point(), second.point()) << "b came after it";
  a.enqueue([] {});
  a.synchronize();
  EXPECT_EQ(a.state()->done_point() + 1, next_point());
}

TEST_P(StreamOrder, WorkKnowsThatItIsWork) {
  const Stream a = stream();
  EXPECT_FALSE(is_in_stream_work());
  bool inside = false;
  a.enqueue([&] { inside = is_in_stream_work(); });
  a.synchronize();
  EXPECT_TRUE(inside);
  EXPECT_FALSE(is_in_stream_work());
  a.enqueue([] { throw 1; });
  EXPECT_THROW(a.synchronize(), int);
  EXPECT_FALSE(is_in_stream_work()) << "also after work that threw";
}

// Everything that a thread enqueued in a stream before it asked for a point happens before every event with
// that point or a later one, also when other threads record concurrently.
TEST(StreamOrder, NumbersHoldBetweenThreads) {
  const Stream a = make_stream("cpu");
  std::atomic<bool> stop{false};
  std::thread recorder([&] {
    while (!stop.load()) a.record().wait();  // which advances the point that is known to be done
  });
  for (int i = 0; i < 2000; ++i) {
    std::atomic<bool> ran{false};
    a.enqueue([&] { ran.store(true); });
    const std::uint64_t point = next_point();
    while (a.state()->done_point() < point) std::this_thread::yield();
    EXPECT_TRUE(ran.load()) << "an event with a later number was done before";
    a.synchronize();
  }
  stop.store(true);
  recorder.join();
}

INSTANTIATE_TEST_SUITE_P(On, StreamOrder, ::testing::Values("cpu", "sim"), [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace berth::testing

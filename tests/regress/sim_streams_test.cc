// SPDX-License-Identifier: Apache-2.0
// Bugs of the simulated device's scheduler: it ran host functions that nothing waited for, missed the wakeup
// when another device's work ended, recursed endlessly between two devices, and accessed an event that was
// already destroyed.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "support/everything.h"
#include "support/scale.h"

namespace berth::testing {
namespace {

TEST(Regress, WaitingRunsNoHostFunctionThatIsNotNeeded) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Device device = make_sim({.seed = seed, .background = false});
    const Stream x = make_stream(device);
    const Stream y = make_stream(device);
    int first = 0;
    bool later = false;
    const Event needed = x.enqueue([&] { first = 1; });
    y.enqueue([&] { later = true; });
    x.wait(y.record());
    needed.wait();
    EXPECT_EQ(first, 1);
    EXPECT_FALSE(later) << "seed " << seed;
    x.synchronize();
    EXPECT_TRUE(later);
  }
}

TEST(Regress, AForeignEventIsNoticedWhileAnotherHostFunctionBlocks) {
  const Device device = make_sim({});
  const Stream blocked = make_stream(device);
  const Stream waiting = make_stream(device);
  const Stream host = make_stream("cpu");
  std::promise<void> gate;
  std::promise<void> entered;
  blocked.enqueue([&] {
    entered.set_value();
    gate.get_future().wait();
  });
  entered.get_future().wait();  // the background thread is inside
  host.enqueue([] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  waiting.wait(host.record());
  waiting.synchronize();
  gate.set_value();
  blocked.synchronize();
}

TEST(Regress, TwoDevicesMayWaitForEachOthersStreams) {
  const Device a = make_sim({.seed = 1, .background = false});
  const Device b = make_sim({.seed = 2, .background = false});
  std::vector<Stream> streams;
  Event last_a;
  Event last_b;
  for (int i = 0; i < 16; ++i) {
    streams.push_back(make_stream(i % 2 == 0 ? a : b));
    streams.back().wait(i % 2 == 0 ? last_b : last_a);
    (i % 2 == 0 ? last_a : last_b) = streams.back().enqueue([] {});
  }
  (void)last_a.query();
  (void)last_b.query();
  last_a.wait();
  last_b.wait();
}

TEST(Regress, WaitsAreSafeWhileOtherThreadsRunTheirEvents) {
  const Device device = make_sim({});
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const Stream x = make_stream(device);
        const Stream y = make_stream(device);
        y.wait(x.enqueue([] {}));
        y.enqueue([] {}).wait();
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(scaled(2000, 50))));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace berth::testing

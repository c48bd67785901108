// SPDX-License-Identifier: Apache-2.0
// Threads as programs have them: cancelled while they wait, with real-time priority, in thousands, and such
// that allocate when they have nearly ended.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "berth/berth.h"
#include "memory/cache/block_table.h"
#include "os/lock/gate.h"
#include "os/lock/mutex.h"

namespace berth::testing {

using namespace internal;
namespace {

// Cancels a thread while it is in `wait`, ends the wait, and returns whether the thread came out of it unharmed
// and was cancelled then.
class Cancelled {
 public:
  explicit Cancelled(std::function<void()> wait) : wait_(std::move(wait)) {}

  bool after(const std::function<void()>& end_wait) {
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, nullptr, run, this), 0);
    while (!waits_.load()) sched_yield();
    const timespec pause{0, 20'000'000};  // it is in the wait by now, or the test shows less
    nanosleep(&pause, nullptr);
    EXPECT_EQ(pthread_cancel(thread), 0);
    nanosleep(&pause, nullptr);
    EXPECT_FALSE(came_out_.load()) << "it did not wait";
    end_wait();
    void* answer = nullptr;
    EXPECT_EQ(pthread_join(thread, &answer), 0);
    return came_out_.load() && answer == PTHREAD_CANCELED;
  }

 private:
  static void* run(void* self) {
    auto& mine = *static_cast<Cancelled*>(self);
    mine.waits_.store(true);
    mine.wait_();
    mine.came_out_.store(true);
    pthread_testcancel();
    return nullptr;
  }

  const std::function<void()> wait_;
  std::atomic<bool> waits_{false};
  std::atomic<bool> came_out_{false};
};

TEST(RegressCancel, AThreadThatWaitsForAMutex) {
  os::Mutex mutex;
  mutex.lock();
  EXPECT_TRUE(Cancelled([&] { const os::Lock lock(mutex); }).after([&] { mutex.unlock(); }));
}

TEST(RegressCancel, AThreadThatWaitsForAMessage) {
  auto [ours, theirs] = Channel::make_pair();
  EXPECT_TRUE(Cancelled([&channel = theirs] { (void)channel.receive(std::chrono::seconds(30)); }).after([&channel = ours] {
    channel.send_bytes({}, 1);
  }));
}

TEST(RegressCancel, AThreadThatWaitsForAStream) {
  const Stream stream = make_stream("cpu");
  std::atomic<bool> go{false};
  stream.enqueue([&] {
    while (!go.load()) sched_yield();
  });
  EXPECT_TRUE(Cancelled([&] { stream.synchronize(); }).after([&] { go.store(true); }));
}

// Runs on one processor at real-time priority; false where that is not allowed.
bool become_real_time() {
  const sched_param first{.sched_priority = 1};
  return pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) == 0;
}
void stay_on_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
}

// A normal thread has something; a real-time thread on the same processor waits for it, and must sleep: as long
// as it ran, the other could not.
void real_time_thread_sleeps(const std::function<void()>& take, const std::function<void()>& wait, const std::function<void()>& give) {
  std::thread normal([&] {
    stay_on_one_processor();
    take();
    std::atomic<bool> runs{false};
    bool allowed = false;
    long slept = 0;
    std::thread real_time([&] {  // inherits the processor
      allowed = become_real_time();
      runs.store(true);
      if (!allowed) return;
      wait();  // with the processor to itself until it sleeps
      rusage used{};
      getrusage(RUSAGE_THREAD, &used);
      slept = used.ru_nvcsw;
    });
    while (!runs.load()) sched_yield();
    give();
    real_time.join();
    if (!allowed) GTEST_SKIP() << "no real-time priority without CAP_SYS_NICE";
    EXPECT_GE(slept, 1);
  });
  normal.join();
}

TEST(RegressRealTime, WaitsForAMutexInTheKernel) {
  os::Mutex mutex;
  real_time_thread_sleeps([&] { mutex.lock(); }, [&] { const os::Lock lock(mutex); }, [&] { mutex.unlock(); });
}

TEST(RegressRealTime, WaitsForAGateInTheKernel) {
  os::Gate gate(1);
  real_time_thread_sleeps([&] { ASSERT_TRUE(gate.try_lock()); },
                          [&] {
                            gate.close();
                            os::fence_all_threads();
                            gate.drain();
                          },
                          [&] { gate.unlock(); });
}

// The number of the cache that handed a block out; 0: the pool itself did, under its lock.
std::uint32_t cache_of(const Block& block) { return memory::BlockEntry::owner_of(block.serial); }

// The bug: a pool had 4,095 caches at most, and each request beyond them looked at all of them.
TEST(RegressCaches, ThereAreEnoughForEveryThreadAndStream) {
  constexpr std::uint32_t kStreams = 100;
  constexpr std::uint32_t kThreads = 60;
  const auto pool = berth::pool("cpu");
  std::vector<Stream> streams;
  for (std::uint32_t i = 0; i < kStreams; ++i) streams.push_back(make_stream("cpu"));
  std::atomic<std::uint32_t> without{0};
  std::atomic<std::uint32_t> most{0};
  std::atomic<std::uint32_t> running{kThreads};
  const auto work = [&] {
    for (const Stream& stream : streams) {
      const Block block = pool->allocate({.bytes = 100, .stream = stream});
      const std::uint32_t number = cache_of(block);
      if (number == 0) ++without;
      for (std::uint32_t seen = most; seen < number && !most.compare_exchange_weak(seen, number);) {
      }
      pool->deallocate(block);
    }
    for (--running; running > 0;) std::this_thread::yield();  // so that none has another's
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(work);
  }
  EXPECT_EQ(without, 0U);
  EXPECT_EQ(most, kThreads * kStreams);
  // They serve the next threads, on the same streams and, when those are gone, on others.
  running = 1;
  work();
  EXPECT_EQ(most, kThreads * kStreams);
  streams.clear();
  for (std::uint32_t i = 0; i < kStreams; ++i) streams.push_back(make_stream("cpu"));
  running = 1;
  std::jthread(work).join();
  EXPECT_EQ(without, 0U);
  EXPECT_LE(most, kThreads * kStreams);
  EXPECT_EQ(pool->audit(), "");
}

// The bug: the cache of such a thread was never returned to the pool.
TEST(RegressCaches, AreReturnedByAThreadThatFirstAllocatesInADestructor) {
  static const auto pool = berth::pool("cpu");
  static std::atomic<std::uint32_t> most{0};
  pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key,
                               [](void*) {
                                 const Block block = pool->allocate({.bytes = 100});
                                 most = std::max(most.load(), cache_of(block));
                                 pool->deallocate(block);
                               }),
            0);
  for (int i = 0; i < 50; ++i) std::jthread([&] { pthread_setspecific(key, &most); }).join();
  pthread_key_delete(key);
  EXPECT_LE(most, 1U);
  EXPECT_EQ(pool->audit(), "");
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "os/lock/mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "os/process/fork.h"
#include "support/scale.h"

namespace {

using namespace berth;
using namespace berth::internal;
using os::Lock;
using os::Mutex;

struct Counter {
  Mutex mutex;
  std::uint64_t value BERTH_GUARDED_BY(mutex) = 0;

  void increment() {
    const Lock lock(mutex);
    value = value + 1;
  }
  std::uint64_t read() {
    const Lock lock(mutex);
    return value;
  }
};

TEST(Mutex, LosesNoIncrementUnderContention) {
  const std::uint64_t count = berth::testing::scaled(200'000, 5000);
  constexpr std::uint64_t kThreads = 8;
  Counter counter;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < count; ++n) counter.increment();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.read(), kThreads * count);
  berth::testing::did(std::to_string(kThreads) + " threads, " + std::to_string(count) + " increments each");
}

// One thread holds the lock nearly always, and releases it for an instant: another, which only polls it now and
// then, would hardly ever acquire it.
TEST(Mutex, IsHadInTheEndByWhoWaits) {
  constexpr int kTurns = 20;
  constexpr std::uint64_t kMost = 1000 * kTurns;
  Mutex mutex;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> hogged = 0;
  std::thread hog([&] {
    while (!stop) {
      const os::Lock lock(mutex);
      ++hogged;
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
      while (std::chrono::steady_clock::now() < until) {
      }
    }
  });
  for (int turn = 0; turn < kTurns && hogged < kMost; ++turn) {
    for (const std::uint64_t seen = hogged; hogged == seen;) std::this_thread::yield();
    const os::Lock lock(mutex);
  }
  stop = true;
  hog.join();
  EXPECT_LT(hogged, kMost);
  berth::testing::did("the other had " + std::to_string(hogged) + " turns meanwhile");
}

TEST(Mutex, MayBeMadeAndDestroyedByManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> total{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) {
        std::array<std::unique_ptr<Counter>, 3> some;
        for (auto& counter : some) counter = std::make_unique<Counter>();
        some[1].reset();  // from the middle of the list of all mutexes
        some[0]->increment();
        some[2]->increment();
        total += some[0]->read() + some[2]->read();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total.load(), 4U * 2000 * 2);
}

// A value passed back and forth between two threads: neither makes progress until the other wakes it.
struct PingPong {
  Mutex mutex;
  os::Condition changed;
  int turn BERTH_GUARDED_BY(mutex) = 0;

  void play(int me, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const Lock lock(mutex);
      while (turn % 2 != me) changed.wait(mutex);
      ++turn;
      changed.notify_all();
    }
  }
};

TEST(Condition, WakesTheOtherSideEachTime) {
  PingPong game;
  const int rounds = static_cast<int>(berth::testing::scaled(5000, 200));
  std::thread other([&] { game.play(1, rounds); });
  game.play(0, rounds);
  other.join();
  const Lock lock(game.mutex);
  EXPECT_EQ(game.turn, 2 * rounds);
  berth::testing::did(std::to_string(rounds) + " rounds");
}

TEST(Condition, WakesAllThatWait) {
  struct {
    Mutex mutex;
    os::Condition changed;
    bool open BERTH_GUARDED_BY(mutex) = false;
    int inside BERTH_GUARDED_BY(mutex) = 0;
    int waiting BERTH_GUARDED_BY(mutex) = 0;
  } gate;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      const Lock lock(gate.mutex);
      ++gate.waiting;
      gate.changed.notify_all();
      while (!gate.open) gate.changed.wait(gate.mutex);
      ++gate.inside;
    });
  }
  {
    const Lock lock(gate.mutex);
    while (gate.waiting < 6) gate.changed.wait(gate.mutex);
    EXPECT_EQ(gate.inside, 0) << "nobody passes a closed gate";
    gate.open = true;
    gate.changed.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  const Lock lock(gate.mutex);
  EXPECT_EQ(gate.inside, 6);
}

// Forks, runs `check` in the child, and returns its exit status; an alarm kills a child that hangs.
template <class Check>
int status_of_child(Check check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(check() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(Mutex, CanBeTakenInAForkedChildWhateverOtherThreadsHold) {
  std::array<Counter, 5> counters;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t n = i; !stop; ++n) {
        counters[n % counters.size()].increment();
        if (n % 16 == 0) Counter().increment();  // enters and leaves the list of all mutexes
      }
    });
  }
  const std::uint64_t forks = berth::testing::scaled(200, 10);
  const std::uint64_t generation = os::fork_generation();
  for (std::uint64_t i = 0; i < forks; ++i) {
    const int status = status_of_child([&] {
      for (Counter& counter : counters) counter.increment();
      Counter made_here;
      made_here.increment();
      return made_here.read() == 1 && os::fork_generation() == generation + 1;
    });
    EXPECT_EQ(status, 0) << "fork " << i << (WIFSIGNALED(status) ? ": ended by a signal" : ": a wrong answer");
    if (status != 0) break;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(os::fork_generation(), generation) << "the parent's stays";
  for (Counter& counter : counters) EXPECT_GT(counter.read(), 0U);
  berth::testing::did(std::to_string(forks) + " forks");
}

TEST(Mutex, ForkWaitsForAHolderSoThatTheChildSeesNoHalfDoneChange) {
  struct {
    Mutex mutex;
    int first BERTH_GUARDED_BY(mutex) = 0;
    int second BERTH_GUARDED_BY(mutex) = 0;
  } pair;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) {
      {
        const Lock lock(pair.mutex);
        ++pair.first;
        std::this_thread::yield();  // a fork right here would copy an inconsistent pair
        ++pair.second;
      }
      // The lock is not fair: gives the fork a chance.
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  for (int i = 0; i < 50; ++i) {
    const int status = status_of_child([&] {
      const Lock lock(pair.mutex);
      return pair.first == pair.second;
    });
    EXPECT_EQ(status, 0);
  }
  stop = true;
  writer.join();
}

TEST(Mutex, AChildOfAChildHasTheNextGeneration) {
  const std::uint64_t generation = os::fork_generation();
  const Mutex installs_the_handlers;
  EXPECT_EQ(status_of_child([&] { return status_of_child([&] { return os::fork_generation() == generation + 2; }) == 0; }), 0);
}

TEST(Origin, IsInheritedInAForkedChildAlone) {
  const Mutex installs_the_handlers;
  os::Origin origin;
  EXPECT_FALSE(origin.is_inherited());
  const int status = status_of_child([&] {
    const bool inherited = origin.is_inherited() && !os::Origin().is_inherited();
    origin = {};  // what the child makes anew is its own
    return inherited && !origin.is_inherited();
  });
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(origin.is_inherited()) << "the parent's stays";
}

}  // namespace

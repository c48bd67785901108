// SPDX-License-Identifier: Apache-2.0
// Three bugs. A fork on one thread accessed pools that another thread was constructing or destroying: they were
// in the list of pools to quiesce before their members were constructed, and after these were destroyed. And a
// block of a device that does not survive a fork could be freed twice in the child without a report. And what
// other threads had half done at the moment of a fork stayed so in the child: a message to a thread's cache
// that was not complete stopped those behind it, and memory that was on its way counted towards the limit for
// ever.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "support/everything.h"
#include "support/misuse_log.h"
#include "support/scale.h"

namespace berth::testing {
namespace {

bool ends_well(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Regress, AForkLeavesAlonePoolsThatComeAndGo) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      const auto memory = pool("cpu");
      memory->deallocate(memory->allocate({.bytes = 1000}));
    }
  });
  const std::uint64_t forks = scaled(500, 50);
  for (std::uint64_t i = 0; i < forks; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(10);
      const auto memory = pool("cpu");
      memory->deallocate(memory->allocate({.bytes = 1000}));
      _exit(memory->stats().frees == 1 ? 0 : 1);
    }
    EXPECT_TRUE(ends_well(child)) << "fork " << i;
  }
  stop = true;
  busy.join();
  did(std::to_string(forks) + " forks");
}

TEST(Regress, AChildFreesAnInheritedBlockOnce) {
  const auto memory = pool(make_sim({}));
  const Block block = memory->allocate({.bytes = 1000});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    const MisuseLog log;
    memory->deallocate(block);
    const bool quiet = log.reported().empty() && memory->stats().live_blocks == 0;
    memory->deallocate(block);
    _exit(quiet && log.reported() == std::vector{MisuseKind::double_free} ? 0 : 1);
  }
  EXPECT_TRUE(ends_well(child));
  memory->deallocate(block);
}

// Threads that work until the end of the test.
class Workers {
 public:
  template <class Work>
  void add(Work work) {
    threads_.emplace_back([this, work] {
      for (std::uint64_t round = 0; !stop_; ++round) work(round);
    });
  }
  ~Workers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// A block that one thread hands to another.
class Hand {
 public:
  void give(Allocator& memory, const Block& block) {
    while (lock_.exchange(true)) std::this_thread::yield();
    const Block before = std::exchange(block_, block);
    lock_ = false;
    if (before.data != nullptr) memory.deallocate(before);
  }

 private:
  std::atomic<bool> lock_{false};
  Block block_{};
};

constexpr std::size_t kForkLimit = std::size_t{512} << 20;

// In the child: the accounts are right, and all that is left of the limit can be had.
int check_child(Allocator& memory, Allocator& branch) {
  if (!memory.audit().empty() || !branch.audit().empty()) {
    std::cerr << memory.audit() << ' ' << branch.audit() << '\n';
    return 1;
  }
  branch.trim(0);
  memory.trim(0);
  const std::size_t taken = memory.stats().committed_bytes + branch.stats().committed_bytes;
  const std::size_t room = (kForkLimit - taken) / 65536 * 65536;
  const std::optional<Block> rest = room == 0 ? std::nullopt : memory.try_allocate({.bytes = room});
  if (room != 0 && !rest) {
    std::cerr << "refused " << room << " with " << taken << " committed\n";
    return 2;
  }
  if (rest) memory.deallocate(*rest);
  if (const std::optional<Block> small = memory.try_allocate({.bytes = 64})) memory.deallocate(*small);
  return memory.audit().empty() ? 0 : 3;
}

// `work(memory, branch, workers)` starts threads that use a pool, and a private pool of it.
template <class Work>
void fork_during(const char* what, std::uint64_t forks, Work work, std::uint32_t region_waits = PoolOptions::kNoRegions) {
  const auto memory = pool("cpu", {.limit_bytes = kForkLimit, .region_waits = region_waits});
  const auto branch = private_pool(memory);
  {
    Workers workers;
    work(memory, branch, workers);
    for (std::uint64_t i = 0; i < forks; ++i) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        alarm(20);
        _exit(check_child(*memory, *branch));
      }
      ASSERT_TRUE(ends_well(child)) << what << ", fork " << i;
    }
  }
  EXPECT_EQ(memory->audit(), "");
  did(std::to_string(forks) + " forks during " + what);
}

TEST(RegressFork, TheChildsPoolIsWhole) {
  const std::uint64_t forks = scaled(1250, 40);
  const auto pairs = [](Allocator& memory, std::size_t bytes) {
    if (const std::optional<Block> block = memory.try_allocate({.bytes = bytes})) memory.deallocate(*block);
  };
  fork_during("pairs of small blocks", forks, [&](auto& memory, auto&, Workers& workers) {
    for (int i = 0; i < 2; ++i) workers.add([&](std::uint64_t round) { pairs(*memory, 64 + round % 4096); });
  });
  fork_during("frees by other threads", forks, [&](auto& memory, auto&, Workers& workers) {
    const auto hands = std::make_shared<std::array<Hand, 4>>();
    for (int i = 0; i < 3; ++i)
      workers.add([&, hands](std::uint64_t round) { (*hands)[round % 4].give(*memory, memory->allocate({.bytes = 64 + round % 512})); });
  });
  const auto sizes = [](std::uint64_t round) { return ((round * 2654435761U) % 60 + 1) << 20; };
  fork_during("requests of all sizes at the limit", forks, [&](auto& memory, auto&, Workers& workers) {
    for (int i = 0; i < 2; ++i) {
      workers.add([&](std::uint64_t round) {
        std::vector<Block> held;
        for (int n = 0; n < 12; ++n) {
          if (const auto block = memory->try_allocate({.bytes = sizes(round * 12 + static_cast<std::uint64_t>(n))})) held.push_back(*block);
        }
        for (std::size_t n = 0; n < held.size(); n += 2) memory->deallocate(held[n]);
        pairs(*memory, std::size_t{200} << 20);
        for (std::size_t n = 1; n < held.size(); n += 2) memory->deallocate(held[n]);
      });
    }
  });
  fork_during("trims", forks, [&](auto& memory, auto&, Workers& workers) {
    workers.add([&](std::uint64_t round) { pairs(*memory, sizes(round)); });
    workers.add([&](std::uint64_t) { memory->trim(0); });
  });
  fork_during("pages that go from one pool to the other", forks, [&](auto& memory, auto& branch, Workers& workers) {
    workers.add([&](std::uint64_t round) { pairs(*memory, sizes(round)); });
    workers.add([&](std::uint64_t round) {
      pairs(*branch, sizes(round));
      branch->trim(0);
    });
  });
  fork_during("reservations", forks, [&](auto& memory, auto&, Workers& workers) {
    workers.add([&](std::uint64_t round) {
      memory->reserve(sizes(round));
      memory->trim(0);
    });
  });
  fork_during("blocks that grow", forks, [&](auto& memory, auto&, Workers& workers) {
    workers.add([&](std::uint64_t round) {
      Block block = memory->allocate({.bytes = std::size_t{1} << 20});
      for (std::size_t bytes = 2; bytes < 64; bytes *= 2) (void)memory->try_grow(block, bytes << 20);
      memory->deallocate(block);
      if (round % 4 == 0) memory->trim(0);
    });
  });
  fork_during(
      "blocks of regions, which are dissolved at times", forks,
      [&](auto& memory, auto&, Workers& workers) {
        const auto hands = std::make_shared<std::array<Hand, 16>>();
        for (std::uint64_t i = 0; i < 3; ++i) {
          workers.add([&, hands, i](std::uint64_t round) {
            if (const auto block = memory->try_allocate({.bytes = 140'000 + round * 7919 % 800'000}))
              (*hands)[(round * 5 + i) % 16].give(*memory, *block);
            if (round % 64 == 0) memory->trim(0);
          });
        }
      },
      0);
  fork_during("pools that open", forks, [&](auto&, auto&, Workers& workers) {
    for (int i = 0; i < 2; ++i) {
      workers.add([&](std::uint64_t round) {
        const auto one = pool("cpu");
        pairs(*one, sizes(round));
      });
    }
  });
}

// `used_on` in a child found the thread's cache of an inherited pool, and the next request was served from a
// device that does not survive a fork.
TEST(Regress, AChildIsServedNothingOfAnInheritedPoolAfterUsedOn) {
  const Device device = make_sim({});
  const auto memory = pool(device);
  const Stream stream = make_stream(device);
  const Block block = memory->allocate({.bytes = 1000});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    try {
      memory->used_on(block, stream);
      (void)memory->allocate({.bytes = 1000});
      _exit(1);
    } catch (const Error& error) {
      _exit(error.code() == ErrorCode::fork_unsafe ? 0 : 2);
    }
  }
  EXPECT_TRUE(ends_well(child));
  memory->deallocate(block);
}

}  // namespace
}  // namespace berth::testing

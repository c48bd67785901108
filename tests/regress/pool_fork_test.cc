// SPDX-License-Identifier: Apache-2.0
// Two bugs. A fork on one thread accessed pools that another thread was constructing or destroying: they were
// in the list of pools to quiesce before their members were constructed, and after these were destroyed. And a
// block of a device that does not survive a fork could be freed twice in the child without a report.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

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

// SPDX-License-Identifier: Apache-2.0
// The bugs: the entries of a size class never served another class, so that a pool whose program changed its
// sizes died for good; and the first small block took the table of the whole pool, 2 GiB of it, which a limit
// on addresses or data, or locked memory, did not survive.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "base/random.h"
#include "base/sanitizers.h"
#include "os/system.h"
#include "support/everything.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

constexpr int kNotAllowed = 77;  // the process may not do what the test needs

int exit_code_in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Of /proc/self/statm, in bytes: field 0 is all addresses, 5 is data and stack.
std::size_t statm(int field) {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  for (int i = 0; i <= field; ++i) file >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

bool set_limit(int resource, std::size_t bytes) {
  const rlimit limit{bytes, bytes};
  return setrlimit(resource, &limit) == 0;
}

// Allocates blocks of a size until so many bytes are live. They stay.
bool fill(Allocator& memory, std::size_t block_bytes, std::size_t bytes) {
  for (std::size_t live = 0; live < bytes; live += block_bytes) {
    if (!memory.try_allocate({.bytes = block_bytes})) return false;
  }
  return true;
}

TEST(RegressTables, PhasesOfEverySizeAreServedOnASmallDevice) {
  constexpr std::size_t kPhase = 16_MiB;
  const auto memory = pool(make_sim({.capacity_bytes = 64_MiB, .page_bytes = 64_KiB, .alignment = 64, .background = false}));
  Random random(seed());
  std::vector<Block> live;
  for (std::uint64_t phase = 0; phase < scaled(200, 24); ++phase) {
    const std::size_t bytes = phase < 16 ? 64 * (phase + 1) : 64 + random.below(phase % 2 == 0 ? 2_KiB : 128_KiB);
    for (std::size_t in_use = 0; in_use < kPhase; in_use += bytes) {
      const auto block = memory->try_allocate({.bytes = bytes});
      ASSERT_TRUE(block) << "phase " << phase << ", blocks of " << bytes << " bytes, " << in_use << " bytes in use";
      live.push_back(*block);
    }
    ASSERT_GE(memory->stats().table_bytes, live.size() * 16);
    for (const Block& block : live) memory->deallocate(block);
    live.clear();
    ASSERT_EQ(memory->stats().in_use_bytes, 0U);
  }
  EXPECT_EQ(memory->audit(), "");
  memory->trim(0);
  EXPECT_LE(memory->stats().table_bytes, 1_MiB);
  EXPECT_EQ(memory->audit(), "");
}

TEST(RegressTables, PhasesHoldLittleMoreThanTheLargest) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer needs memory of its own";
  EXPECT_EQ(exit_code_in_child([] {
              constexpr std::size_t kPhase = 128_MiB;
              std::vector<Block> live;
              live.reserve(kPhase / 64);
              live.resize(kPhase / 64);  // touched: the list is not the pool's, and neither is the code of a first request
              for (const auto first = pool("cpu"); const std::size_t bytes : {64U, 4096U})
                first->deallocate(first->allocate({.bytes = bytes}));
              const std::size_t before = os::resident_memory().now_bytes;
              const auto memory = pool("cpu");
              Random random(seed());
              for (std::uint64_t phase = 0; phase < scaled(100, 8); ++phase) {
                const std::size_t bytes = phase == 0 ? 64 : 64 + random.below(64) * 64;
                live.clear();
                for (std::size_t in_use = 0; in_use + bytes <= kPhase; in_use += bytes) {
                  live.push_back(memory->allocate({.bytes = bytes}));
                  for (std::size_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(live.back().data)[at] = 1;
                }
                const std::size_t held = os::resident_memory().now_bytes - before;
                if (held > kPhase / 10 * 13) {
                  std::cerr << "phase " << phase << " of " << bytes << " bytes holds " << held << "\n";
                  return 1;
                }
                for (const Block& block : live) memory->deallocate(block);
              }
              return 0;
            }),
            0);
}

class RegressAddressLimit : public ::testing::TestWithParam<std::size_t> {};

TEST_P(RegressAddressLimit, HalfOfItIsUsable) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer takes addresses of its own";
  EXPECT_EQ(exit_code_in_child([] {
              if (!set_limit(RLIMIT_AS, 1_GiB + statm(0))) return 2;
              const auto memory = pool("cpu");
              return fill(*memory, GetParam(), 512_MiB) ? 0 : 1;
            }),
            0);
}
INSTANTIATE_TEST_SUITE_P(BlocksOf, RegressAddressLimit, ::testing::Values(64, 100'000, 1_MiB, 512_MiB),
                         [](const auto& param) { return std::to_string(param.param); });

TEST(RegressTables, AreSmallUnderALimitOfData) {
  EXPECT_EQ(exit_code_in_child([] {
              if (!set_limit(RLIMIT_DATA, 48_MiB + statm(5))) return 2;
              const auto memory = pool("cpu");
              return fill(*memory, 64, 16_MiB) ? 0 : 1;
            }),
            0);
}

TEST(RegressTables, AreSmallWhereMemoryIsLocked) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer needs memory of its own";
  const int code = exit_code_in_child([] {
    const auto warm = pool("cpu");
    warm->deallocate(warm->allocate({.bytes = 64}));
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return kNotAllowed;
    const std::size_t before = os::resident_memory().now_bytes;
    const auto memory = pool("cpu");
    const auto block = memory->try_allocate({.bytes = 64});
    if (!block) return errno == EAGAIN || errno == ENOMEM ? kNotAllowed : 1;
    memory->deallocate(*block);
    return os::resident_memory().now_bytes - before < 16_MiB ? 0 : 3;
  });
  if (code == kNotAllowed) GTEST_SKIP() << "this process may not lock its memory";
  EXPECT_EQ(code, 0);
}

TEST(RegressTables, WithoutProcTheMachinesMemoryCounts) {
  const int code = exit_code_in_child([] {
    const bool hidden = unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                        mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
    if (!hidden) return kNotAllowed;
    const auto memory = pool("cpu");
    return memory->try_allocate({.bytes = 400_MiB}).has_value() ? 0 : 1;  // not touched
  });
  if (code == kNotAllowed) GTEST_SKIP() << "this process may not mount";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace berth::testing

// SPDX-License-Identifier: Apache-2.0
#include "os/memory/mappings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>

#include "os/process/fork.h"
#include "os/process/no_cancel.h"

namespace berth::internal::os {

namespace {

constexpr std::size_t kUsualMost = 65530;  // vm.max_map_count where it is unknown
constexpr std::size_t kShare = 4;
constexpr std::size_t kMostCounted = 16384;  // whatever the kernel allows: the list of so many is read in some 7 ms

// All relaxed: the numbers guard no other memory, and an estimate may be off by what other threads are doing.
constinit std::atomic<std::size_t> g_most{0};  // 0: not known yet
constinit std::atomic<std::size_t> g_estimate{0};
constinit std::atomic<bool> g_scarce{false};
constinit std::atomic<std::uint64_t> g_counting{0};  // the process in which a thread counts: its fork generation + 1

std::size_t read_most() noexcept {
  const NoCancel no_cancel;
  unsigned long long most = kUsualMost;
  if (FILE* const file = std::fopen("/proc/sys/vm/max_map_count", "re")) {
    if (std::fscanf(file, "%llu", &most) != 1) most = kUsualMost;
    std::fclose(file);
  }
  return std::clamp<std::size_t>(static_cast<std::size_t>(most) / kShare, 1, kMostCounted);
}

// Asks the kernel. While mappings are scarce it is asked again after a share of the calls that would have cut
// one: reading the list takes milliseconds when it is long.
void correct() noexcept {
  const std::uint64_t process = fork_generation() + 1;
  if (g_counting.exchange(process) == process) return;  // another thread does
  const std::size_t most = most_mappings();
  const std::size_t count = count_mappings();
  const bool scarce = count == 0 || count > most - most / 4;
  g_estimate.store(scarce ? most - most / 8 : count, std::memory_order_relaxed);
  g_scarce.store(scarce, std::memory_order_relaxed);
  g_counting.store(0);
}

void add(std::size_t mappings) noexcept {
  if (g_estimate.fetch_add(mappings, std::memory_order_relaxed) + mappings > most_mappings()) correct();
}

}  // namespace

std::size_t most_mappings() noexcept {
  if (const std::size_t known = g_most.load(std::memory_order_relaxed)) return known;
  const std::size_t most = read_most();
  g_most.store(most, std::memory_order_relaxed);
  return most;
}

void set_most_mappings(std::size_t most) noexcept {
  g_most.store(most, std::memory_order_relaxed);
  correct();
}

void note_cut() noexcept { add(2); }

bool are_mappings_scarce() noexcept {
  if (!g_scarce.load(std::memory_order_relaxed)) return false;
  add(1);
  return g_scarce.load(std::memory_order_relaxed);
}

std::size_t count_mappings(const char* path) noexcept {
  const NoCancel no_cancel;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 16384> part;
  std::size_t lines = 0;
  ssize_t got = 0;
  while ((got = read(file, part.data(), part.size())) > 0)
    lines += static_cast<std::size_t>(std::count(part.data(), part.data() + got, '\n'));
  close(file);
  return got < 0 ? 0 : lines;
}

}  // namespace berth::internal::os

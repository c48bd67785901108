// SPDX-License-Identifier: Apache-2.0
// The pool on a kernel before 6.17, whose mremap fails where the source is several mappings, after it has unmapped the target.
// Other threads map memory all the time: it may land in the hole, and must not be hurt. With a second argument one in
// FAIL_EVERY calls fails like that, for lack of memory, as on any kernel. Usage: old_mremap ROUNDS [FAIL_EVERY]
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "berth/berth.h"

namespace {

std::atomic<std::uint64_t> g_moves{0};
std::atomic<std::uint64_t> g_refused{0};
std::uint64_t g_fail_every = 0;

void* real_mremap(void* from, std::size_t old_bytes, std::size_t bytes, int flags, void* to) {
  return reinterpret_cast<void*>(syscall(SYS_mremap, from, old_bytes, bytes, flags, to));
}

bool is_one_mapping(std::uintptr_t begin, std::size_t bytes) {
  FILE* const maps = std::fopen("/proc/self/maps", "re");
  char line[512];
  bool one = false;
  while (!one && std::fgets(line, sizeof line, maps) != nullptr) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    one = std::sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= begin && begin + bytes <= to;
  }
  std::fclose(maps);
  return one;
}

}  // namespace

extern "C" void* mremap(void* from, std::size_t old_bytes, std::size_t bytes, int flags, ...) noexcept {
  std::va_list rest;
  va_start(rest, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  if (to == nullptr) return real_mremap(from, old_bytes, bytes, flags, nullptr);
  const bool one = is_one_mapping(reinterpret_cast<std::uintptr_t>(from), old_bytes);
  const bool fails = g_moves.fetch_add(1) % (g_fail_every == 0 ? UINT64_MAX : g_fail_every) == g_fail_every - 1;
  if (one && !fails) return real_mremap(from, old_bytes, bytes, flags, to);
  if (!one) ++g_refused;
  munmap(to, bytes);
  for (int i = 0; i < 20; ++i) sched_yield();
  errno = one ? ENOMEM : EFAULT;
  return MAP_FAILED;
}

namespace {

// Maps, writes, checks and unmaps, in the sizes that holes have.
void map_all_the_time(const std::atomic<bool>& stop, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::pair<unsigned char*, std::size_t>> mine;
  while (!stop.load()) {
    const std::size_t bytes = std::size_t{4096} << (random() % 11);
    void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) continue;
    auto* const at = static_cast<unsigned char*>(made);
    at[0] = at[bytes - 1] = static_cast<unsigned char>(seed);
    mine.emplace_back(at, bytes);
    if (mine.size() < 64) continue;
    const std::size_t which = random() % mine.size();
    const auto [old, length] = mine[which];
    if (old[0] != seed || old[length - 1] != seed) std::abort();
    munmap(old, length);
    mine[which] = mine.back();
    mine.pop_back();
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 2000;
  g_fail_every = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 0;
  std::atomic<bool> stop{false};
  std::thread first([&] { map_all_the_time(stop, 1); });
  std::thread second([&] { map_all_the_time(stop, 2); });
  const auto pool = berth::pool("cpu", {.limit_bytes = std::size_t{256} << 20});
  std::mt19937 random(3);
  std::vector<berth::Block> live;
  std::size_t bytes = 0;
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t wanted = (std::size_t{1} << 18) + random() % (std::size_t{12} << 20);
    while (!live.empty() && bytes + wanted > (std::size_t{230} << 20)) {
      const std::size_t which = random() % live.size();
      if (*static_cast<unsigned char*>(live[which].data) != 7) std::abort();
      bytes -= live[which].bytes;
      pool->deallocate(live[which]);
      live[which] = live.back();
      live.pop_back();
    }
    try {
      live.push_back(pool->allocate({.bytes = wanted}));
    } catch (const berth::OutOfMemory&) {
      ++refused;
      continue;
    }
    bytes += wanted;
    *static_cast<unsigned char*>(live.back().data) = 7;
  }
  stop.store(true);
  first.join();
  second.join();
  const std::string wrong = pool->audit();
  for (const berth::Block& block : live) pool->deallocate(block);
  std::printf("%llu moves, %llu of several mappings, %d of %d requests refused%s%s\n", static_cast<unsigned long long>(g_moves.load()),
              static_cast<unsigned long long>(g_refused.load()), refused, rounds, wrong.empty() ? "" : ", ", wrong.c_str());
  return wrong.empty() && g_moves.load() > 0 ? 0 : 1;
}

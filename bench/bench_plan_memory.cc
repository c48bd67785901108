// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "berth/berth.h"
#include "berth/plan.h"

// The peak memory use of planning:
//   bench_plan_memory [--steps] FILE
// Reads a graph and plans it, counting the usable size of every heap block of the process. Memory held before
// `plan` is called does not count: that is the caller's graph. Everything else held until `plan` returns
// counts, including the returned plan. --steps prints the peak of each strategy to standard error.
namespace {

std::atomic<std::size_t> held = 0;
std::atomic<std::size_t> most = 0;

void count(void* block) noexcept {
  const std::size_t now = held.fetch_add(malloc_usable_size(block)) + malloc_usable_size(block);
  for (std::size_t seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
  }
}

void* counted(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  count(block);
  return block;
}

void* counted_aligned(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}

void forget(void* block) noexcept {
  held -= malloc_usable_size(block);  // 0 for null
  std::free(block);
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new[](std::size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return counted_aligned(bytes, alignment); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return counted_aligned(bytes, alignment); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  void* const block = std::malloc(bytes);
  if (block != nullptr) count(block);
  return block;
}
void operator delete(void* block) noexcept { forget(block); }
void operator delete[](void* block) noexcept { forget(block); }
void operator delete(void* block, std::size_t) noexcept { forget(block); }
void operator delete[](void* block, std::size_t) noexcept { forget(block); }
void operator delete(void* block, std::align_val_t) noexcept { forget(block); }
void operator delete[](void* block, std::align_val_t) noexcept { forget(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { forget(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { forget(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { forget(block); }

namespace {

std::shared_ptr<const berth::Graph> read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return std::make_shared<const berth::Graph>(berth::read_graph(bytes, path));
}

double each(std::size_t bytes, std::size_t buffers) { return static_cast<double>(bytes) / static_cast<double>(buffers); }

// The peak of held memory, per interval between calls.
class Growth {
 public:
  Growth() : before_(held) { most = before_; }

  std::size_t now() const { return held - before_; }
  std::size_t since_last() const { return most - before_; }
  std::size_t ever() const { return std::max(ever_, since_last()); }
  void look() {
    ever_ = ever();
    most = held.load();
  }

 private:
  const std::size_t before_;
  std::size_t ever_ = 0;
};

void measure(const char* path, bool steps) {
  const std::shared_ptr<const berth::Graph> graph = read(path);
  const std::size_t given = held;
  berth::PlanOptions options;
  std::string last = "the checks";
  Growth growth;
  if (steps)
    options.on_strategy = [&](const berth::PlanProgress& progress) {
      std::fprintf(stderr, "%-16s at most %10zu bytes, then %10zu\n", last.c_str(), growth.since_last(), growth.now());
      growth.look();
      last = progress.strategy;
    };
  const berth::Plan plan = berth::plan(graph, options);
  const std::size_t peak = growth.ever();
  const std::size_t kept = growth.now();
  if (steps) std::fprintf(stderr, "%-16s at most %10zu bytes, then %10zu: the plan\n", last.c_str(), growth.since_last(), kept);
  const std::size_t buffers = std::max<std::size_t>(plan.buffers().size(), 1);
  std::printf("{\n  \"buffers\": %zu,\n  \"graph_bytes_each\": %.1f,\n", buffers, each(given, buffers));
  std::printf("  \"plan_bytes_each\": %.1f,\n  \"most_bytes_each\": %.1f\n}\n", each(kept, buffers), each(peak, buffers));
}

}  // namespace

int main(int count, char** words) {
  const bool steps = count == 3 && std::string_view(words[1]) == "--steps";
  if (count != 2 && !steps) {
    std::fputs("usage: bench_plan_memory [--steps] FILE\n", stderr);
    return 2;
  }
  try {
    measure(words[count - 1], steps);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_plan_memory: %s\n", error.what());
    return 1;
  }
  return 0;
}

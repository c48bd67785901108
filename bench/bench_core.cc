// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>

#include "berth/berth.h"
#include "berth/observe.h"
#include "record/emit.h"

// The cost of core operations, compared with familiar ones: a view with copies of a std::shared_ptr, a small
// storage with malloc and free. A second thread is alive throughout: without one the C++ runtime counts
// references without atomic instructions, which no real program sees. Linked with the shared library, as users
// link it. Not measured: contention, and cold caches.
//
//     ./build/release/bench/bench_core --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
namespace {

using namespace berth;
using namespace berth::internal::record;

// A thread that only sleeps.
class SecondThread {
 public:
  SecondThread()
      : thread_([this] {
          while (!stop_) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }) {}
  ~SecondThread() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void copy_shared_ptr(benchmark::State& state) {
  const auto pointer = std::make_shared<int>(1);
  for (auto _ : state) {
    std::shared_ptr<int> copy = pointer;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(copy_shared_ptr);

void view_slice(benchmark::State& state) {
  const Storage x = empty({64, 3, 224, 224}, DType::f32, "cpu");
  for (auto _ : state) {
    Storage view = x.slice(0, 8, 16);
    benchmark::DoNotOptimize(view);
  }
}
BENCHMARK(view_slice);

void view_transpose(benchmark::State& state) {
  const Storage x = empty({64, 3, 224, 224}, DType::f32, "cpu");
  for (auto _ : state) {
    Storage view = x.transpose(1, 3);
    benchmark::DoNotOptimize(view);
  }
}
BENCHMARK(view_transpose);

void view_permute(benchmark::State& state) {
  const Storage x = empty({64, 3, 224, 224}, DType::f32, "cpu");
  for (auto _ : state) {
    Storage view = x.permute({0, 2, 3, 1});
    benchmark::DoNotOptimize(view);
  }
}
BENCHMARK(view_permute);

void view_reshape(benchmark::State& state) {
  const Storage x = empty({64, 3, 224, 224}, DType::f32, "cpu");
  for (auto _ : state) {
    Storage view = x.reshape({64, -1});
    benchmark::DoNotOptimize(view);
  }
}
BENCHMARK(view_reshape);

void view_select(benchmark::State& state) {
  const Storage x = empty({64, 3, 224, 224}, DType::f32, "cpu");
  for (auto _ : state) {
    Storage view = x.select(0, 5);
    benchmark::DoNotOptimize(view);
  }
}
BENCHMARK(view_select);

void malloc_free_64(benchmark::State& state) {
  for (auto _ : state) {
    void* block = std::malloc(64);
    benchmark::DoNotOptimize(block);
    std::free(block);
  }
}
BENCHMARK(malloc_free_64);

void empty_64(benchmark::State& state) {
  for (auto _ : state) {
    Storage x = empty({16}, DType::f32, "cpu");
    benchmark::DoNotOptimize(x);
  }
}
BENCHMARK(empty_64);

void allocate_64(benchmark::State& state) {
  const auto memory = direct("cpu");
  for (auto _ : state) {
    const Block block = memory->allocate({.bytes = 64});
    benchmark::DoNotOptimize(block.data);
    memory->deallocate(block);
  }
}
BENCHMARK(allocate_64);

// The cost of observing. Without observers: the guard in front of each record, compared with an empty loop (the
// difference is its cost; `allocate_64` passes two). With an observer: the same allocation with a sink that
// only counts.
void empty_loop(benchmark::State& state) {
  for (auto _ : state) benchmark::ClobberMemory();
}
BENCHMARK(empty_loop);

void record_guard(benchmark::State& state) {
  // The count of sinks is this program's copy of the library's: always 0, and read in the same way.
  for (auto _ : state) {
    if (is_recording()) [[unlikely]]
      std::abort();
    benchmark::ClobberMemory();
  }
}
BENCHMARK(record_guard);

struct CountingSink : Sink {
  // relaxed: only a counter.
  void on_record(const Record&) noexcept override { count.fetch_add(1, std::memory_order_relaxed); }
  std::atomic<std::uint64_t> count{0};
};

void allocate_64_observed(benchmark::State& state) {
  const SinkAttachment attached = attach_sink(std::make_shared<CountingSink>());
  allocate_64(state);
}
BENCHMARK(allocate_64_observed);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const SecondThread alive;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

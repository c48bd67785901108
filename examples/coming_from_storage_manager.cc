// SPDX-License-Identifier: Apache-2.0
// For users of a storage manager: one facade over every kind of memory, with a manager per device that is
// created on first use, strategies chosen by name, direct free, release all, and a profiler hook. Each part
// shows their call in a comment and berth's below it. "sim:0" stands in for "cuda:0": the host cannot access
// its memory either.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "expect.h"

using namespace berth;

namespace {

// Storage::Get()->Alloc(size, Context::GPU(0))   Context::CPU()   Context::CPUPinned(0)
void one_facade() {
  for (const char* device : {"cpu", "pinned", "sim:0"}) {
    // One per device, created on first use.
    const std::shared_ptr<Allocator>& manager = default_allocator(device);
    expect(manager == default_allocator(device), "one manager per device, made when first asked for");
    const Block handle = manager->allocate({.bytes = 1000});
    expect(handle.data != nullptr && handle.bytes == 1000 && handle.device == device, "a block is the handle: dptr, size, ctx");
    manager->deallocate(handle);  // Storage::Get()->Free(handle)
  }
}

// MXNET_GPU_MEM_POOL_TYPE=Round   Naive   Unpooled
void strategies_by_name() {
  expect(make_allocator("rounded", "sim:0")->name() == "rounded", "Round is rounded");
  expect(make_allocator("exact", "sim:0")->name() == "exact", "Naive is exact");
  expect(make_allocator("direct", "sim:0")->name() == "direct", "Unpooled is direct");
  expect(make_allocator("pool", "sim:0")->name() == "pool", "and pool is what you get when you choose nothing");

  // MXNET_GPU_MEM_POOL_PAGE_SIZE=4096   MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF=24
  const auto named = make_allocator("rounded:least=4KiB,cutoff=16MiB", "cpu");
  const auto coded = rounded("cpu", {.least_bytes = 4_KiB, .cutoff_bytes = 16_MiB});
  expect(named->settings() == coded->settings(), "options as text or in code, and settings() prints them");
  std::printf("       %s\n", named->settings().c_str());

  bool refused = false;
  try {
    make_allocator("rounded:least=1MiB,cutoff=64KiB", "cpu");
  } catch (const ArgumentError& error) {
    refused = true;
    std::printf("       %s\n", error.what());
  }
  expect(refused, "options that contradict are refused, with the reason");

  // For every device of a kind, from the environment: BERTH_SIM_ALLOCATOR=rounded. Read when the device is
  // first used.
  setenv("BERTH_SIM_ALLOCATOR", "exact:granularity=4KiB", 1);
  const Device fresh = make_sim({});
  expect(default_allocator(fresh)->name() == "exact", "BERTH_<KIND>_ALLOCATOR chooses the strategy of a kind of device");
  unsetenv("BERTH_SIM_ALLOCATOR");
}

// A request that the pool can serve does not reach the device.
void reuse() {
  const auto buckets = rounded("cpu", {.least_bytes = 4_KiB});
  const Block first = buckets->allocate({.bytes = 600'000});
  buckets->deallocate(first);  // Free: stays in the pool
  const Block second = buckets->allocate({.bytes = 700'000});
  expect(second.data == first.data && buckets->stats().commits == 1, "rounded: both are 1 MiB, so the block is reused");
  buckets->deallocate(second);

  const auto same = exact("cpu");
  const Block third = same->allocate({.bytes = 600'000});
  same->deallocate(third);
  same->deallocate(same->allocate({.bytes = 700'000}));
  expect(same->stats().commits == 2, "exact: another size is another block");
}

// Storage::Get()->DirectFree(handle)   Storage::Get()->ReleaseAll(ctx)
void direct_free_and_release_all() {
  const Device device = make_sim({});
  const auto memory = rounded(device);
  const Block pooled = memory->allocate({.bytes = 1_MiB});
  const Block gone = memory->allocate({.bytes = 1_MiB});
  memory->deallocate(pooled);
  memory->deallocate_now(gone);  // DirectFree
  expect(sim_control(device).committed_bytes() == 1_MiB, "deallocate_now: the device has it back; deallocate: the pool has");
  memory->release_cached();  // ReleaseAll
  expect(sim_control(device).committed_bytes() == 0, "release_cached: the device has everything back");
  memory->reserve(1_MiB);
  memory->trim(0);
  expect(memory->stats().committed_bytes == 0, "reserve takes ahead, trim(bytes) gives back all but that");
}

// MXNET_GPU_MEM_POOL_RESERVE: the part of the device that the pool must not use
void limits() {
  const auto limited = rounded("sim:0", {.limit_bytes = 1_MiB});
  expect(!limited->try_allocate({.bytes = 2_MiB}), "a limit on what a strategy takes from its device");
  try {
    limited->allocate({.bytes = 2_MiB, .tag = "activations"});
  } catch (const OutOfMemory& error) {
    std::printf("       %s\n", error.what());
    expect(error.report().limit_bytes == 1_MiB, "and the error says which limit, who holds what, and what was tried");
  }
}

// The storage profiler: handle.profiler_scope, handle.name, OnAlloc(handle), OnFree(handle)
struct Profiler : Sink {
  void on_record(const Record& record) noexcept override {
    if (record.tag != Tag("decoder")) return;
    const auto bytes = static_cast<std::int64_t>(record.bytes);
    if (record.kind == RecordKind::allocated) live += bytes;  // OnAlloc
    if (record.kind == RecordKind::freed) live -= bytes;      // OnFree
    peak = std::max(peak.load(), live.load());
  }
  std::atomic<std::int64_t> live{0};
  std::atomic<std::int64_t> peak{0};
};

void profiler_hook() {
  const auto profiler = std::make_shared<Profiler>();
  const SinkAttachment attached = attach_sink(profiler);
  {
    const TagScope scope("decoder");  // profiler_scope: everything allocated below carries it
    const Storage x = empty({1000}, DType::f32, "sim:0");
    const Storage y = empty({1000}, DType::f32, "cpu");
    expect(profiler->live == 8000, "a sink sees every allocation of every device, with its tag");
  }
  expect(profiler->live == 0 && profiler->peak == 8000, "and every free");
}

}  // namespace

int main() {
  one_facade();
  strategies_by_name();
  reuse();
  direct_free_and_release_all();
  limits();
  profiler_hook();
  return g_right ? 0 : 1;
}

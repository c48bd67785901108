// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/errors.h"
#include "support/everything.h"
#include "support/misuse_log.h"
#include "support/scale.h"

// The pressure callback, and other user code that berth calls: it may use the allocator that called it.
namespace berth::testing {
namespace {

std::shared_ptr<Allocator> small_pool() { return pool(make_sim({.capacity_bytes = 8_MiB, .background = false})); }

TEST(Pressure, FreesSomethingAndTheRequestIsServed) {
  for (const bool limited : {false, true}) {
    const auto memory = limited ? limit(pool("cpu"), 8_MiB) : small_pool();
    const Block victim = memory->allocate({.bytes = 5_MiB});
    std::vector<Pressure> seen;
    memory->on_pressure([&](const Pressure& pressure) {
      seen.push_back(pressure);
      memory->deallocate(victim);
      return true;
    });
    const Block served = memory->allocate({.bytes = 6_MiB, .alignment = 4096, .tag = "kv"});
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].requested_bytes, 6_MiB);
    EXPECT_EQ(seen[0].alignment, 4096U);
    EXPECT_EQ(seen[0].tag, Tag("kv"));
    EXPECT_EQ(seen[0].device, memory->device());
    EXPECT_EQ(seen[0].allocator_id, memory->id());
    EXPECT_EQ(seen[0].call, 1U);
    memory->deallocate(served);
    EXPECT_EQ(memory->audit(), "");
  }
}

TEST(Pressure, IsCalledABoundedNumberOfTimes) {
  const auto memory = small_pool();
  unsigned calls = 0;
  memory->on_pressure([&](const Pressure& pressure) {
    EXPECT_EQ(pressure.call, ++calls);
    return true;  // though nothing was freed
  });
  try {
    (void)memory->allocate({.bytes = 9_MiB});
    FAIL() << "was served";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(error.report().to_string().find("pressure callback"), std::string::npos) << error.report().to_string();
  }
  EXPECT_EQ(calls, kMostPressureCalls);
  calls = 0;
  EXPECT_FALSE(memory->try_allocate({.bytes = 9_MiB}));
  EXPECT_EQ(calls, kMostPressureCalls);
}

TEST(Pressure, FalseRefusesAtOnce) {
  const auto memory = small_pool();
  unsigned calls = 0;
  memory->on_pressure([&](const Pressure&) { return ++calls == 0; });
  EXPECT_FALSE(memory->try_allocate({.bytes = 9_MiB}));
  EXPECT_EQ(calls, 1U);
  memory->on_pressure({});
  EXPECT_FALSE(memory->try_allocate({.bytes = 9_MiB}));
  EXPECT_EQ(calls, 1U) << "it was removed";
}

TEST(Pressure, IsOnlyForALackOfMemory) {
  const auto memory = small_pool();
  unsigned calls = 0;
  memory->on_pressure([&](const Pressure&) { return ++calls == 0; });
  EXPECT_FALSE(memory->try_allocate({.bytes = SIZE_MAX})) << "no callback could help there";
  const Hold quiet = memory->hold();
  EXPECT_FALSE(memory->try_allocate({.bytes = 1_MiB}));
  EXPECT_ERROR((void)memory->allocate({.bytes = 1, .alignment = 3}), ArgumentError, ErrorCode::invalid_alignment);
  EXPECT_EQ(calls, 0U);
}

TEST(Pressure, TheCallbackMayUseTheAllocatorAndIsNotCalledFromWithin) {
  const auto memory = small_pool();
  const Block kept = memory->allocate({.bytes = 3_MiB});
  unsigned calls = 0;
  memory->on_pressure([&](const Pressure&) {
    ++calls;
    EXPECT_EQ(memory->stats().in_use_bytes, 3_MiB);
    EXPECT_EQ(memory->holders().size(), 1U);
    EXPECT_EQ(memory->audit(), "");
    memory->trim(0);
    EXPECT_FALSE(memory->try_allocate({.bytes = 6_MiB}));
    const Block small = memory->allocate({.bytes = 1000});
    memory->deallocate(small);
    memory->on_pressure({});  // also while it runs
    return true;
  });
  EXPECT_FALSE(memory->try_allocate({.bytes = 7_MiB}));
  EXPECT_EQ(calls, 1U);
  memory->deallocate(kept);
  EXPECT_EQ(memory->audit(), "");
}

TEST(Pressure, WhatTheCallbackThrowsIsAnErrorThatNamesIt) {
  const auto memory = small_pool();
  const Block kept = memory->allocate({.bytes = 5_MiB});
  memory->on_pressure([&](const Pressure&) -> bool { throw std::runtime_error("the cache is locked"); });
  const Stats before = memory->stats();
  EXPECT_ERROR((void)memory->allocate({.bytes = 6_MiB}), Error, ErrorCode::callback_failed);
  EXPECT_ERROR((void)memory->try_allocate({.bytes = 6_MiB}), Error, ErrorCode::callback_failed);
  EXPECT_ERROR((void)empty({6 << 20}, DType::u8, memory), Error, ErrorCode::callback_failed);
  try {
    (void)memory->allocate({.bytes = 6_MiB});
  } catch (const Error& error) {
    EXPECT_NE(error.why().find("the cache is locked"), std::string::npos) << error.why();
    EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
  }
  memory->on_pressure([](const Pressure&) -> bool { throw 7; });
  EXPECT_ERROR((void)memory->allocate({.bytes = 6_MiB}), Error, ErrorCode::callback_failed);
  Stats after = memory->stats();
  after.failures = before.failures;
  EXPECT_EQ(after, before);
  EXPECT_EQ(memory->audit(), "");
  memory->on_pressure({});
  const auto small = memory->try_allocate({.bytes = 1_MiB});
  EXPECT_TRUE(small) << "it works on";
  if (small) memory->deallocate(*small);
  memory->deallocate(kept);
}

TEST(Pressure, ThreadsFreeForOneAnother) {
  const auto memory = small_pool();
  std::atomic<std::uint64_t> calls{0};
  thread_local std::vector<Block>* t_own = nullptr;
  memory->on_pressure([&](const Pressure&) {
    ++calls;
    if (t_own->empty()) return false;
    memory->deallocate(t_own->back());
    t_own->pop_back();
    return true;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<Block> own;
      t_own = &own;
      for (std::uint64_t i = 0; i < scaled(20'000, 300); ++i) {
        if (const auto block = memory->try_allocate({.bytes = 200_KiB + i % 7 * 100_KiB})) own.push_back(*block);
      }
      for (const Block& block : own) memory->deallocate(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(calls, 0U);
  EXPECT_EQ(memory->stats().in_use_bytes, 0U);
  EXPECT_EQ(memory->audit(), "");
}

// A sink and a misuse handler are called without a lock, too.
TEST(Callbacks, ASinkMayUseThePoolThatItWatches) {
  struct Nosy : Sink {
    explicit Nosy(std::shared_ptr<Allocator> allocator) : memory(std::move(allocator)) {}
    void on_record(const Record& record) noexcept override {
      if (record.allocator_id != memory->id()) return;
      ++records;
      for (const std::size_t bytes : {100_KiB, 1_MiB}) memory->deallocate(memory->allocate({.bytes = bytes}));
      sound = sound && memory->audit().empty() && memory->holders().size() <= 1;
      memory->trim(0);
    }
    std::shared_ptr<Allocator> memory;
    int records = 0;
    bool sound = true;
  };
  const auto memory = small_pool();
  const auto sink = std::make_shared<Nosy>(memory);
  SinkAttachment attached = attach_sink(sink);
  for (const std::size_t bytes : {std::size_t{100}, 1_MiB}) memory->deallocate(memory->allocate({.bytes = bytes}));
  EXPECT_FALSE(memory->try_allocate({.bytes = 9_MiB}));
  attached.detach();
  EXPECT_EQ(sink->records, 5);
  EXPECT_TRUE(sink->sound);
  EXPECT_EQ(memory->stats().in_use_bytes, 0U);
}

TEST(Callbacks, AMisuseHandlerMayUseThePoolThatCalledIt) {
  static std::shared_ptr<Allocator> memory;
  static int reports = 0;
  memory = small_pool();
  reports = 0;
  const MisuseHandler before = set_misuse_handler([](const Misuse&) noexcept {
    ++reports;
    memory->deallocate(memory->allocate({.bytes = 1000}));
    if (!memory->audit().empty()) reports += 100;
  });
  for (const std::size_t bytes : {std::size_t{100}, 1_MiB}) {
    const Block block = memory->allocate({.bytes = bytes});
    memory->deallocate(block);
    memory->deallocate(block);
    memory->deallocate_now(block);
  }
  set_misuse_handler(before);
  EXPECT_EQ(reports, 4);
  memory = nullptr;
}

}  // namespace
}  // namespace berth::testing

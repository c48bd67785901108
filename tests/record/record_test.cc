// SPDX-License-Identifier: Apache-2.0
#include "berth/record/record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "record/emit.h"
#include "support/heap_faults.h"
#include "support/scale.h"

namespace {

using namespace berth;
using namespace berth::internal::record;

// As the library does it.
void observe(std::uint64_t serial) {
  if (is_recording()) emit({.kind = RecordKind::allocated, .device = {}, .bytes = 64, .serial = serial});
}

struct CountingSink : Sink {
  std::atomic<int> count{0};
  void on_record(const Record&) noexcept override { ++count; }
};

struct Collector : Sink {
  std::mutex mutex;
  std::vector<Record> records;
  void on_record(const Record& record) noexcept override {
    const std::lock_guard lock(mutex);
    records.push_back(record);
  }
};

TEST(Record, ReachesEverySinkWhileItIsAttached) {
  const auto first = std::make_shared<CountingSink>();
  const auto second = std::make_shared<CountingSink>();
  EXPECT_FALSE(is_recording());
  observe(1);
  {
    const SinkAttachment a = attach_sink(first);
    EXPECT_TRUE(is_recording());
    observe(2);
    SinkAttachment b = attach_sink(second);
    observe(3);
    b.detach();
    EXPECT_TRUE(is_recording());
    observe(4);
  }
  EXPECT_FALSE(is_recording());
  observe(5);
  emit({.kind = RecordKind::freed, .device = {}});
  EXPECT_EQ(first->count, 3);
  EXPECT_EQ(second->count, 1);
}

TEST(Record, ArrivesAsItWasMadeWithItsTime) {
  const auto sink = std::make_shared<Collector>();
  const SinkAttachment attached = attach_sink(sink);
  const int target = 0;
  const SiteId site = intern(Site::here());
  emit({.kind = RecordKind::copied,
        .device = {2, 1},
        .source_device = {1, 3},
        .address = &target,
        .bytes = 77,
        .allocator_id = 8,
        .serial = 9,
        .stream_id = 10,
        .tag = Tag("kv"),
        .site = site});
  ASSERT_EQ(sink->records.size(), 1U);
  const Record& record = sink->records[0];
  EXPECT_EQ(record.kind, RecordKind::copied);
  EXPECT_EQ(record.device, (DeviceKey{2, 1}));
  EXPECT_EQ(record.source_device, (DeviceKey{1, 3}));
  EXPECT_EQ(record.address, &target);
  EXPECT_EQ(record.bytes, 77U);
  EXPECT_EQ(record.allocator_id, 8U);
  EXPECT_EQ(record.serial, 9U);
  EXPECT_EQ(record.stream_id, 10U);
  EXPECT_EQ(record.tag, Tag("kv"));
  EXPECT_EQ(record.site, site);
  EXPECT_NE(record.time_ns, 0U) << "filled in when delivered";
}

TEST(Record, ReachesASinkAttachedTwiceTwice) {
  const auto sink = std::make_shared<CountingSink>();
  SinkAttachment once = attach_sink(sink);
  const SinkAttachment again = attach_sink(sink);
  observe(1);
  EXPECT_EQ(sink->count, 2);
  once.detach();
  observe(2);
  EXPECT_EQ(sink->count, 3);
}

TEST(SinkAttachment, MovesAndLetsTheSinkGo) {
  const auto sink = std::make_shared<CountingSink>();
  SinkAttachment first = attach_sink(sink);
  SinkAttachment second = std::move(first);
  first.detach();  // NOLINT: what a move leaves is attached to nothing
  observe(1);
  EXPECT_EQ(sink->count, 1);
  const auto other = std::make_shared<CountingSink>();
  second = attach_sink(other);
  observe(2);
  EXPECT_EQ(sink->count, 1) << "assigning over it detached it";
  EXPECT_EQ(sink.use_count(), 1);
  SinkAttachment& same = second;
  second = std::move(same);
  observe(3);
  EXPECT_EQ(other->count, 2);
  second.detach();
  second.detach();
  EXPECT_FALSE(is_recording());
  EXPECT_EQ(other.use_count(), 1);
}

TEST(Sink, IsNotCalledForTheRecordsItCauses) {
  struct Recursive : Sink {
    int count = 0;
    void on_record(const Record&) noexcept override {
      ++count;
      observe(100);
    }
  };
  const auto sink = std::make_shared<Recursive>();
  const auto other = std::make_shared<CountingSink>();
  const SinkAttachment a = attach_sink(sink);
  const SinkAttachment b = attach_sink(other);
  observe(1);
  observe(2);
  EXPECT_EQ(sink->count, 2);
  EXPECT_EQ(other->count, 2) << "nor is any other";
}

TEST(Sink, MayDetachItselfWhileItIsCalled) {
  struct Once : Sink {
    SinkAttachment attachment;
    int* calls = nullptr;
    void on_record(const Record&) noexcept override {
      attachment.detach();
      ++*calls;  // it is still alive
    }
  };
  int calls = 0;
  auto sink = std::make_shared<Once>();
  sink->calls = &calls;
  sink->attachment = attach_sink(sink);
  const std::weak_ptr<Once> watch = sink;
  sink.reset();
  observe(1);
  observe(2);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(watch.expired());
}

TEST(Sink, MayAttachAnotherWhileItIsCalled) {
  struct Attaching : Sink {
    std::shared_ptr<CountingSink> next = std::make_shared<CountingSink>();
    SinkAttachment attachment;
    void on_record(const Record&) noexcept override {
      if (next.use_count() == 1) attachment = attach_sink(next);
    }
  };
  const auto sink = std::make_shared<Attaching>();
  const SinkAttachment attached = attach_sink(sink);
  observe(1);
  EXPECT_EQ(sink->next->count, 0) << "the list of that moment counts";
  observe(2);
  EXPECT_EQ(sink->next->count, 1);
  sink->attachment.detach();
}

TEST(Sink, ReceivesTheRecordsOfAllThreads) {
  const std::uint64_t count = berth::testing::scaled(20'000, 500);
  constexpr std::uint64_t kThreads = 4;
  const auto sink = std::make_shared<Collector>();
  {
    const SinkAttachment attached = attach_sink(sink);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < count; ++i) observe(t * count + i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::set<std::uint64_t> serials;
  for (const Record& record : sink->records) serials.insert(record.serial);
  EXPECT_EQ(sink->records.size(), kThreads * count);
  EXPECT_EQ(serials.size(), kThreads * count) << "each exactly once";
  berth::testing::did(std::to_string(kThreads) + " threads, " + std::to_string(count) + " records each");
}

TEST(Sink, ComesAndGoesWhileOthersRecord) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> made{0};
  const auto steady = std::make_shared<CountingSink>();
  const SinkAttachment attached = attach_sink(steady);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        observe(1);
        ++made;
      }
    });
  }
  const std::uint64_t rounds = berth::testing::scaled(2000, 100);
  std::vector<std::thread> changing;
  for (int t = 0; t < 2; ++t) {
    changing.emplace_back([&] {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        const auto brief = std::make_shared<CountingSink>();
        const SinkAttachment here = attach_sink(brief);
        const int before = brief->count;
        observe(2);
        EXPECT_GT(brief->count, before);
        ++made;
      }
    });
  }
  for (std::thread& thread : changing) thread.join();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(static_cast<std::uint64_t>(steady->count), made.load()) << "the one that stays misses nothing";
  berth::testing::did(std::to_string(2 * rounds) + " sinks attached and detached");
}

TEST(Sink, IsNotAttachedAtAllWhenTheHeapFails) {
  const auto sink = std::make_shared<CountingSink>();
  { const SinkAttachment warm = attach_sink(sink); }  // the list itself is allocated once
  for (std::uint64_t nth = 1;; ++nth) {
    const std::int64_t live = berth::testing::live_news();
    bool attached = false;
    {
      const berth::testing::FailNthNew fail(nth);
      try {
        const SinkAttachment attachment = attach_sink(sink);
        attached = true;
      } catch (const std::bad_alloc&) {
        EXPECT_TRUE(fail.happened());
      }
      if (!fail.happened()) break;
    }
    observe(1);
    EXPECT_EQ(sink->count, 0) << "allocation " << nth;
    EXPECT_FALSE(is_recording());
    // If only the detaching failed, the sink is removed with the next change.
    if (attached) {
      const SinkAttachment next = attach_sink(std::make_shared<CountingSink>());
    }
    EXPECT_EQ(sink.use_count(), 1) << "allocation " << nth;
    EXPECT_EQ(berth::testing::live_news(), live) << "allocation " << nth;
    ASSERT_LT(nth, 100U);
  }
}

TEST(Sink, IsNotCalledAgainOnceDetachedEvenIfTheHeapFails) {
  const auto sink = std::make_shared<CountingSink>();
  const auto other = std::make_shared<CountingSink>();
  SinkAttachment attached = attach_sink(sink);
  SinkAttachment stays = attach_sink(other);
  {
    const berth::testing::FailNthNew fail(1);
    attached.detach();
    EXPECT_TRUE(fail.happened());
  }
  observe(1);
  EXPECT_EQ(sink->count, 0);
  EXPECT_EQ(other->count, 1);
  stays.detach();
  EXPECT_EQ(sink.use_count(), 1) << "let go with the next change";
  EXPECT_FALSE(is_recording());
}

TEST(Record, EveryKindHasItsOwnName) {
  EXPECT_EQ(to_string(RecordKind::allocated), "allocated");
  EXPECT_EQ(to_string(RecordKind::freed), "freed");
  EXPECT_EQ(to_string(RecordKind::allocation_failed), "allocation_failed");
  EXPECT_EQ(to_string(RecordKind::copied), "copied");
  EXPECT_EQ(to_string(RecordKind::filled), "filled");
}

}  // namespace

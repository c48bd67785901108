// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/random.h"
#include "berth/storage/create.h"
#include "berth/storage/dlpack.h"
#include "berth/storage/inspect.h"
#include "support/everything.h"
#include "support/scale.h"

// Leaks: each kind that is planted is found, with all that is known about it, and nothing else is.
namespace berth::testing {

using namespace internal::base;

namespace {

const Leak& only(const Leaks& leaks) {
  static const Leak none;
  EXPECT_EQ(leaks.size(), 1U) << leaks;
  return leaks.empty() ? none : leaks.front();
}

TEST(Tracker, FindsNothingWhereNothingIsLeft) {
  const Tracker tracker;
  {
    const Storage x = empty({16, 16}, DType::f32, "cpu");
    const Storage y = x.transpose(0, 1).clone();
    const Storage h = y.to(DType::bf16);
    const Buffer raw = make_buffer(1000, "cpu");
    raw.fill(0);
    default_allocator("cpu")->deallocate(default_allocator("cpu")->allocate({.bytes = 5}));
    (void)from_dlpack(to_dlpack(h));
  }
  EXPECT_TRUE(tracker.leaks().empty()) << tracker.leaks();
}

TEST(Tracker, DoesNotCountWhatIsOlder) {
  const Storage old = empty({16}, DType::f32, "cpu");
  const Block older = default_allocator("cpu")->allocate({.bytes = 100});
  const Tracker tracker;
  const Storage copy = old;
  EXPECT_TRUE(tracker.leaks().empty()) << tracker.leaks();
  default_allocator("cpu")->deallocate(older);
}

TEST(Tracker, FindsAStorageWithItsShapeTagSiteAndHandles) {
  const Tracker tracker;
  const TagScope scope("kv");
  const Storage x = empty({2, 3}, DType::f32, "cpu");
  const int line = __LINE__ - 1;
  const Storage same = x;
  const Leaks leaks = tracker.leaks();
  const Leak& leak = only(leaks);
  EXPECT_EQ(leak.kind, LeakKind::storage);
  EXPECT_EQ(leak.owner, Owner::allocator);
  EXPECT_EQ(leak.bytes, 24U);
  EXPECT_EQ(leak.dtype, DType::f32);
  EXPECT_EQ(leak.shape, Shape({2, 3}));
  EXPECT_EQ(leak.tag, Tag("kv"));
  EXPECT_EQ(site_of(leak.site).line, static_cast<std::uint32_t>(line));
  EXPECT_EQ(leak.handles, 2);
  EXPECT_EQ(leak.address, x.data_ptr());
  EXPECT_EQ(leak.allocator, "pool");
  EXPECT_NE(leak.to_string().find("storage f32 [2, 3], 24 B on cpu:0, tag kv, at tracker_test.cc:"), std::string::npos) << leak.to_string();
  EXPECT_NE(leak.to_string().find("held by 2 handles"), std::string::npos);
}

TEST(Tracker, FindsAViewWhoseStorageIsGone) {
  const Tracker tracker;
  std::optional<Storage> x = empty({8, 4}, DType::f32, "cpu");
  const Storage view = x->slice(0, 2, 4);
  EXPECT_EQ(tracker.leaks().size(), 2U);
  x.reset();
  const Leaks leaks = tracker.leaks();
  const Leak& leak = only(leaks);
  EXPECT_EQ(leak.kind, LeakKind::view);
  EXPECT_EQ(leak.shape, Shape({2, 4}));
  EXPECT_EQ(leak.bytes, 128U) << "the view keeps all of the buffer";
  EXPECT_EQ(leak.handles, 1);
}

TEST(Tracker, FindsAViewOfAStorageThatIsOlder) {
  const Storage old = empty({8, 4}, DType::f32, "cpu");
  const Tracker tracker;
  const Storage view = old.transpose(0, 1);
  const Leaks leaks = tracker.leaks();
  const Leak& leak = only(leaks);
  EXPECT_EQ(leak.kind, LeakKind::view);
  EXPECT_EQ(leak.bytes, 0U) << "its bytes are no news";
}

TEST(Tracker, FindsABlockThatWasNotFreed) {
  const auto memory = pool("cpu");
  const Tracker tracker;
  const Block kept = memory->allocate({.bytes = 100, .tag = "raw"});
  const int line = __LINE__ - 1;
  memory->deallocate(memory->allocate({.bytes = 100}));
  const Leaks leaks = tracker.leaks();
  const Leak& leak = only(leaks);
  EXPECT_EQ(leak.kind, LeakKind::block);
  EXPECT_EQ(leak.bytes, 100U);
  EXPECT_EQ(leak.tag, Tag("raw"));
  EXPECT_EQ(leak.allocator, "pool");
  EXPECT_NE(to_string(leak.site).find("tracker_test.cc"), std::string::npos);
  EXPECT_EQ(site_of(leak.site).line, static_cast<std::uint32_t>(line));
  memory->deallocate(kept);
  EXPECT_TRUE(tracker.leaks().empty());
}

TEST(Tracker, KnowsWhereEveryKindOfRequestWasMade) {
  const auto memory = pool("cpu");
  const Tracker tracker;
  const Request request{.bytes = 100};
  std::vector<Block> blocks;
  const int line = __LINE__;
  blocks.push_back(memory->allocate(request));
  blocks.push_back(memory->allocate({.bytes = 100, .zeroed = true}));
  blocks.push_back(*memory->try_allocate(request));
  blocks.push_back(*memory->try_allocate({.bytes = 100}));
  const Leaks leaks = tracker.leaks();
  ASSERT_EQ(leaks.size(), blocks.size());
  for (std::size_t i = 0; i < leaks.size(); ++i)
    EXPECT_EQ(site_of(leaks[i].site).line, static_cast<std::uint32_t>(line) + i + 1) << to_string(leaks[i].site);
  for (const Block& block : blocks) memory->deallocate(block);
}

TEST(Tracker, FindsABufferWithoutAStorage) {
  const Tracker tracker;
  const Buffer raw = make_buffer(5000, "cpu");
  const Leaks leaks = tracker.leaks();
  EXPECT_EQ(only(leaks).kind, LeakKind::buffer);
  EXPECT_EQ(only(leaks).bytes, 5000U);
}

TEST(Tracker, FindsMemoryFromOutside) {
  std::vector<float> values(6);
  const Tracker tracker;
  const Storage x = from_blob(values.data(), {2, 3}, DType::f32, "cpu");
  const Leaks leaks = tracker.leaks();
  EXPECT_EQ(only(leaks).kind, LeakKind::storage);
  EXPECT_EQ(only(leaks).owner, Owner::external);
  EXPECT_EQ(only(leaks).address, values.data());
  EXPECT_NE(to_string(only(leaks).site).find("tracker_test.cc"), std::string::npos);
}

TEST(Tracker, FindsAStorageThatCameByDlpack) {
  const Storage source = empty({4}, DType::i32, "cpu");
  DlpackTensor tensor = to_dlpack(source);
  const Tracker tracker;
  const Storage x = from_dlpack(std::move(tensor));
  const Leaks leaks = tracker.leaks();
  EXPECT_EQ(only(leaks).owner, Owner::dlpack);
  EXPECT_EQ(only(leaks).dtype, DType::i32);
  EXPECT_NE(to_string(only(leaks).site).find("tracker_test.cc"), std::string::npos);
}

TEST(Tracker, FindsAStorageThatOnlyADlpackConsumerHas) {
  const Tracker tracker;
  std::optional<Storage> x = empty({4}, DType::i32, "cpu");
  dlpack::ManagedTensorVersioned* const tensor = to_dlpack(*x).take();
  EXPECT_EQ(only(tracker.leaks()).kind, LeakKind::storage);
  x.reset();
  const Leaks leaks = tracker.leaks();
  EXPECT_EQ(only(leaks).kind, LeakKind::exported);
  EXPECT_EQ(only(leaks).bytes, 16U);
  EXPECT_NE(only(leaks).holder.find("DLPack"), std::string::npos);
  tensor->deleter(tensor);
  EXPECT_TRUE(tracker.leaks().empty()) << tracker.leaks();
}

TEST(Tracker, FindsASharedStorage) {
  const Tracker tracker;
  const Storage x = empty({1024}, DType::f32, "cpu");
  berth::share(x);
  const Leaks leaks = tracker.leaks();
  EXPECT_EQ(only(leaks).kind, LeakKind::storage);
  EXPECT_EQ(only(leaks).device, Device("shared"));
}

TEST(Tracker, CountsOnlyFromARestart) {
  Tracker tracker;
  const Storage before = empty({4}, DType::f32, "cpu");
  tracker.restart();
  EXPECT_TRUE(tracker.leaks().empty());
  const Storage after = empty({5}, DType::f32, "cpu");
  EXPECT_EQ(only(tracker.leaks()).shape, Shape({5}));
}

TEST(Tracker, KeepsStacksWhenAsked) {
  const Tracker tracker({.stack_depth = 8});
  const Storage x = empty({4}, DType::f32, "cpu");
  const Leaks leaks = tracker.leaks();
  EXPECT_NE(only(leaks).stack, StackId{});
  EXPECT_NE(call_site_of(only(leaks).stack).frames[0], nullptr);
  EXPECT_FALSE(to_string(only(leaks).stack).empty());
  EXPECT_THROW(Tracker({.stack_depth = CallSite::kMostFrames + 1}), ArgumentError);
}

TEST(Tracker, LeavesCountsOfHandlesAsTheyAre) {
  const Storage old = empty({4}, DType::f32, "cpu");
  const Tracker tracker;
  const Storage x = empty({4, 4}, DType::f32, "cpu");
  EXPECT_EQ(x.use_count(), 1);
  const Storage same = x;
  const Storage view = x.select(0, 1);
  EXPECT_EQ(x.use_count(), 3);
  EXPECT_EQ(view.use_count(), 3);
  EXPECT_TRUE(view.is_view_of(x));
  const Storage of_old = old.reshape({2, 2});
  EXPECT_EQ(old.use_count(), 2);
  EXPECT_EQ(inspect(x).use_count, 3);
}

TEST(Tracker, WritesLeaksAsJson) {
  const Tracker tracker;
  const Storage x = empty({2, 3}, DType::f32, "cpu", {.tag = "a\"b"});
  JsonWriter json;
  const Leaks leaks = tracker.leaks();
  only(leaks).write_json(json);
  const auto read = nlohmann::json::parse(json.take());
  EXPECT_EQ(read["kind"], "storage");
  EXPECT_EQ(read["tag"], "a\"b");
  EXPECT_EQ(read["shape"], nlohmann::json::array({2, 3}));
}

// Snapshots have the sites and ages of what a tracker observes.
TEST(Tracker, GivesSnapshotsSitesAndAges) {
  const auto memory = pool("cpu");
  const Block before = memory->allocate({.bytes = 100, .site = Site::here()});
  const Tracker tracker;
  const Block after = memory->allocate({.bytes = 100, .site = Site::here()});
  const Snapshot snapshot = memory->snapshot();
  ASSERT_EQ(snapshot.blocks.size(), 2U);
  for (const SnapshotBlock& block : snapshot.blocks) {
    const bool watched = snapshot.base + block.offset == reinterpret_cast<std::uintptr_t>(after.data);
    EXPECT_EQ(block.age_ns != 0, watched);
    EXPECT_EQ(snapshot.sites[block.site].find("tracker_test.cc") != std::string::npos, watched);
  }
  memory->deallocate(before);
  memory->deallocate(after);
}

// Random storages, views, exports and blocks of several threads, against a list of those that were kept.
TEST(Tracker, FindsExactlyWhatFourThreadsHaveKept) {
  const Tracker tracker;
  const std::uint64_t steps = scaled(20'000, 200);
  std::vector<std::vector<Storage>> kept(4);
  std::vector<std::vector<Block>> blocks(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed() + t);
      for (std::uint64_t i = 0; i < steps; ++i) {
        const Storage x = empty({static_cast<std::int64_t>(2 + random.below(64)), 3}, DType::f32, "cpu");
        const Storage view = x.slice(0, 1);
        if (random.one_in(20)) kept[t].push_back(random.one_in(2) ? x : view);
        if (random.one_in(40)) blocks[t].push_back(default_allocator("cpu")->allocate({.bytes = 1 + random.below(300'000)}));
        if (random.one_in(3) && !kept[t].empty()) kept[t].pop_back();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<const void*> expected;
  for (const auto& list : kept) {
    for (const Storage& storage : list) expected.push_back(storage.buffer().data());
  }
  for (const auto& list : blocks) {
    for (const Block& block : list) expected.push_back(block.data);
  }
  std::vector<const void*> found;
  for (const Leak& leak : tracker.leaks()) found.push_back(leak.address);
  std::ranges::sort(expected);
  std::ranges::sort(found);
  EXPECT_EQ(found, expected);
  did("kept " + std::to_string(expected.size()) + " of " + std::to_string(8 * steps) + " storages and views, and found them");
  for (const auto& list : blocks) {
    for (const Block& block : list) default_allocator("cpu")->deallocate(block);
  }
}

}  // namespace
}  // namespace berth::testing

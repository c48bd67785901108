// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/random.h"
#include "berth/base/units.h"
#include "memory/cache/size_classes.h"
#include "memory/cache/thread_cache.h"
#include "memory/pool/cell_map.h"
#include "memory/space/extents.h"
#include "os/lock/gate.h"
#include "support/scale.h"

// The pool's parts, each on its own: size classes, trees of extents, extents, cells, inboxes, caches and gates.
namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

TEST(SizeClasses, ServeEveryByteCountWithAtMostAnEighthLost) {
  for (const std::size_t alignment : {1U, 64U, 128U, 256U, 512U, 1024U, 4096U}) {
    const SizeClasses classes(alignment);
    const std::size_t least = std::max<std::size_t>(alignment, 64);
    ASSERT_GT(classes.count(), 0U);
    ASSERT_LE(classes.count(), SizeClasses::kMost);
    for (std::size_t bytes = 1; bytes <= kSmallLimit; ++bytes) {
      const SizeClass c = classes.find(bytes);
      ASSERT_LT(c, classes.count()) << bytes;
      const std::size_t rounded = classes[c].bytes;
      ASSERT_GE(rounded, bytes);
      SizeClass smaller = c;
      while (smaller > 0 && classes[smaller - 1].bytes % least != 0) --smaller;
      ASSERT_TRUE(smaller == 0 || classes[smaller - 1].bytes < bytes) << bytes << " bytes fit in a smaller class";
      ASSERT_LE(rounded - bytes, std::max(least - 1, bytes / 8)) << bytes;
      ASSERT_EQ(rounded % least, 0U);
    }
    EXPECT_EQ(classes[classes.count() - 1].bytes, kSmallLimit) << "no class is out of reach";
  }
}

TEST(SizeClasses, SlabsAreWholeGrainsAndLoseLittleAtTheEnd) {
  for (const std::size_t alignment : {64U, 512U, 4096U}) {
    const SizeClasses classes(alignment);
    for (SizeClass c = 0; c < classes.count(); ++c) {
      const ClassInfo& info = classes[c];
      EXPECT_EQ(info.slab_bytes % kSlabGrain, 0U);
      EXPECT_GE(info.blocks, 4U);
      EXPECT_LE(info.blocks, 1024U) << "a slab's bits";
      EXPECT_LE(std::size_t{info.blocks} * info.bytes, info.slab_bytes);
      EXPECT_LE(info.slab_bytes - info.blocks * info.bytes, info.slab_bytes / 32);
    }
  }
}

TEST(SizeClasses, FindTheSmallestWithAnAlignment) {
  for (const std::size_t device_alignment : {64U, 512U}) {
    const SizeClasses classes(device_alignment);
    for (std::size_t alignment = 1; alignment <= 64_KiB; alignment *= 2) {
      for (std::size_t bytes = 1; bytes <= kSmallLimit; bytes += 1 + bytes / 40) {
        const SizeClass c = classes.find_aligned(bytes, alignment);
        SizeClass expected = classes.find(bytes);
        while (expected < classes.count() && classes[expected].bytes % alignment != 0) ++expected;
        if (alignment > kSlabGrain) expected = classes.count();
        ASSERT_EQ(c, expected) << bytes << " aligned to " << alignment;
      }
    }
  }
}

TEST(SizeClasses, ThereAreNoneForADeviceWithCoarseAlignment) {
  const SizeClasses classes(64_KiB);
  EXPECT_EQ(classes.count(), 0U);
  EXPECT_EQ(classes.find_aligned(1, 64), 0U);
}

// If the left child of the erased node has no children, the right child must become the right child of it.
TEST(ExtentTree, EraseKeepsTheOrder) {
  constexpr std::size_t kCount = 64;
  for (std::size_t gone = 0; gone < kCount; ++gone) {
    std::vector<PoolExtent> nodes(kCount);
    ExtentTree tree(4);
    for (std::size_t i = 0; i < kCount; ++i) {
      nodes[i].begin = 10 * i;
      nodes[i].bytes = 10;
      nodes[i].index = static_cast<std::uint32_t>(i * 7 % kCount);
      tree.insert(&nodes[i]);
    }
    tree.erase(&nodes[gone]);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(tree.covering(10 * i + 5), i == gone ? nullptr : &nodes[i]) << "extent " << i << " after erasing " << gone;
    }
  }
}

TEST(ExtentTree, AgreesWithAList) {
  Random random(seed());
  constexpr std::size_t kCount = 200;
  std::vector<PoolExtent> nodes(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    nodes[i].begin = 1000 * i;
    nodes[i].index = static_cast<std::uint32_t>(i);
  }
  constexpr std::size_t kPage = 256;
  ExtentTree tree(kPage);
  std::set<std::size_t> in;  // by index, which is the order of addresses
  const std::uint64_t steps = scaled(1'000'000, 2000);
  for (std::uint64_t step = 0; step < steps; ++step) {
    PoolExtent& e = nodes[random.below(kCount)];
    const auto i = static_cast<std::size_t>(&e - nodes.data());
    if (!in.contains(i)) {
      e.bytes = 1 + random.below(1000);
      tree.insert(&e);
      in.insert(i);
    } else if (random.one_in(3)) {
      e.bytes = 1 + random.below(1000);
      tree.resized(&e);
    } else {
      tree.erase(&e);
      in.erase(i);
    }
    const std::size_t wanted = 1 + random.below(1100);
    const auto fits = [&](std::size_t n) { return nodes[n].bytes >= wanted; };
    const auto first = std::ranges::find_if(in, fits);
    ASSERT_EQ(tree.first(wanted), first == in.end() ? nullptr : &nodes[*first]) << step;
    const auto last = std::find_if(in.rbegin(), in.rend(), fits);
    ASSERT_EQ(tree.last(wanted), last == in.rend() ? nullptr : &nodes[*last]) << step;
    const std::size_t offset = random.below(1000 * kCount);
    const bool covered = in.contains(offset / 1000) && offset % 1000 < nodes[offset / 1000].bytes;
    ASSERT_EQ(tree.covering(offset), covered ? &nodes[offset / 1000] : nullptr) << step;
    const auto begins_below = [&](std::size_t n) { return nodes[n].begin < offset; };
    const auto below = std::find_if(in.rbegin(), in.rend(), [&](std::size_t n) { return begins_below(n) && fits(n); });
    ASSERT_EQ(tree.last_below(offset, wanted), below == in.rend() ? nullptr : &nodes[*below]) << step;
    const auto has_page = [&](std::size_t n) { return (nodes[n].begin + kPage - 1) / kPage * kPage + kPage <= nodes[n].end(); };
    const auto whole = std::find_if(in.rbegin(), in.rend(), [&](std::size_t n) { return begins_below(n) && has_page(n); });
    ASSERT_EQ(tree.last_whole_below(offset), whole == in.rend() ? nullptr : &nodes[*whole]) << step;
    ASSERT_EQ(tree.empty(), in.empty());
    if (in.empty()) continue;
    const std::size_t from = *std::next(in.begin(), static_cast<std::ptrdiff_t>(random.below(in.size())));
    const auto after = std::find_if(std::next(in.find(from)), in.end(), fits);
    ASSERT_EQ(tree.next(&nodes[from], wanted), after == in.end() ? nullptr : &nodes[*after]) << step;
    const auto before = std::find_if(std::make_reverse_iterator(in.find(from)), in.rend(), fits);
    ASSERT_EQ(tree.previous(&nodes[from], wanted), before == in.rend() ? nullptr : &nodes[*before]) << step;
  }
  did(std::to_string(steps) + " steps, seed " + std::to_string(seed()));
}

// The state of each unit of a range, unit by unit.
class ExtentsModel {
 public:
  static constexpr std::size_t kUnits = 400;
  static constexpr std::uint32_t kStreams = 4;

  ExtentsModel(std::uint64_t seed, Extents::Fit fit) : random_(seed), fit_(fit), sole_stream_(random_.one_in(2)), units_(kUnits) {
    reserve();
    extents_ = std::make_unique<Extents>(nodes_, 0, kUnits, 8, fit);
    extents_->set_sole_stream(sole_stream_);
    for (std::uint32_t s = 0; s < kStreams; ++s) extents_->add_stream(s);
  }

  void step() {
    reserve();
    const std::uint64_t kind = random_.below(10);
    if (kind < 4)
      take_cached();
    else if (kind < 5)
      take_bare();
    else if (kind < 8)
      give();
    else if (kind < 9)
      clean();
    else
      split_and_join();
  }

  void check() const {
    ASSERT_EQ(extents_->audit(), "");
    std::size_t at = 0;
    std::size_t used = 0;
    for (const PoolExtent* e = extents_->front(); e != nullptr; e = e->next, ++used) {
      ASSERT_EQ(e->begin, at);
      for (; at < e->end(); ++at) {
        ASSERT_EQ(units_[at].state, e->state) << "unit " << at;
        if (e->state != ExtentState::cached) continue;
        ASSERT_EQ(units_[at].stream, e->stream) << "unit " << at;
        ASSERT_LE(units_[at].point, e->point) << "a ticket was forgotten at unit " << at;
      }
    }
    ASSERT_EQ(at, kUnits);
    ASSERT_EQ(used, nodes_.used()) << "nodes were lost";
  }

 private:
  struct Unit {
    ExtentState state = ExtentState::bare;
    std::uint32_t stream = 0;
    std::uint64_t point = 0;
  };

  void reserve() { ASSERT_TRUE(nodes_.reserve(Extents::kNodesPerCut + 1)); }
  void set(std::size_t begin, std::size_t bytes, Unit unit) {
    std::fill_n(units_.begin() + static_cast<std::ptrdiff_t>(begin), bytes, unit);
  }

  // The first or the best fit, among extents that are clean or the stream's own.
  void take_cached() {
    const auto stream = static_cast<std::uint32_t>(random_.below(kStreams));
    const std::size_t bytes = 1 + random_.below(20);
    PoolExtent* const found = extents_->find_cached(bytes, stream);
    const PoolExtent* expected = nullptr;
    for (const PoolExtent* e = extents_->front(); e != nullptr; e = e->next) {
      if (e->state != ExtentState::cached || (e->stream != 0 && e->stream != stream) || e->bytes < bytes) continue;
      if (expected == nullptr || (fit_ == Extents::Fit::best && e->bytes < expected->bytes)) expected = e;
    }
    ASSERT_EQ(found == nullptr, expected == nullptr);
    if (found == nullptr) return;
    ASSERT_TRUE(fit_ == Extents::Fit::best || found == expected);
    ASSERT_EQ(found->bytes, expected->bytes);
    ASSERT_TRUE(found->stream == 0 || found->stream == stream);
    const std::size_t begin = found->begin + random_.below(found->bytes - bytes + 1);
    live_.push_back(extents_->cut(found, begin, bytes, ExtentState::live));
    set(begin, bytes, {ExtentState::live});
  }

  void take_bare() {
    PoolExtent* const found = extents_->bare_tree().first(1 + random_.below(20));
    if (found == nullptr) return;
    const std::size_t bytes = 1 + random_.below(found->bytes);
    const std::size_t begin = found->begin + random_.below(found->bytes - bytes + 1);
    live_.push_back(extents_->cut(found, begin, bytes, ExtentState::transit));
    set(begin, bytes, {ExtentState::transit});
  }

  void give() {
    if (live_.empty()) return;
    std::swap(live_[random_.below(live_.size())], live_.back());
    PoolExtent* const extent = live_.back();
    live_.pop_back();
    const std::size_t begin = extent->begin;
    const std::size_t bytes = extent->bytes;
    if (random_.one_in(4)) {
      extents_->free_bare(extent);
      set(begin, bytes, {});
      return;
    }
    const auto stream = static_cast<std::uint32_t>(random_.below(kStreams));
    extents_->free_cached(extent, stream, ++point_);
    set(begin, bytes, {ExtentState::cached, stream, stream == 0 ? 0 : point_});
    if (fit_ == Extents::Fit::best && stream != 0) take_over_clean(begin, bytes);
  }

  // What is clean beside a range that was freed: all units in a row, up to as many as were freed.
  void take_over_clean(std::size_t begin, std::size_t bytes) {
    const auto is_clean = [&](std::size_t at) { return at < kUnits && units_[at].state == ExtentState::cached && units_[at].stream == 0; };
    std::size_t first = begin;
    std::size_t last = begin + bytes;
    while (is_clean(first - 1)) --first;
    while (is_clean(last)) ++last;
    const auto takes = [&](std::size_t clean) { return sole_stream_ || clean <= bytes; };
    if (takes(begin - first)) set(first, begin - first, units_[begin]);
    if (takes(last - begin - bytes)) set(begin + bytes, last - begin - bytes, units_[begin]);
  }

  // Extents whose point is covered are clean; one that was coalesced with a younger one waits for the younger
  // point.
  void clean() {
    const auto stream = static_cast<std::uint32_t>(1 + random_.below(kStreams - 1));
    const std::uint64_t point = random_.below(point_ + 1);
    for (const PoolExtent* e = extents_->front(); e != nullptr; e = e->next) {
      if (e->state == ExtentState::cached && e->stream == stream && e->point <= point) set(e->begin, e->bytes, {ExtentState::cached});
    }
    extents_->clean(stream, point);
  }

  void split_and_join() {
    if (live_.empty()) return;
    PoolExtent* const extent = live_[random_.below(live_.size())];
    if (extent->bytes < 2) return;
    const std::size_t bytes = extent->bytes;
    PoolExtent* const rest = extents_->split(extent, 1 + random_.below(bytes - 1));
    ASSERT_EQ(extent->end(), rest->begin);
    if (random_.one_in(2)) {
      live_.push_back(rest);
      return;
    }
    extents_->join_next(extent);
    ASSERT_EQ(extent->bytes, bytes);
  }

  Random random_;
  const Extents::Fit fit_;
  const bool sole_stream_;
  Extents::Nodes nodes_;
  std::unique_ptr<Extents> extents_;
  std::vector<Unit> units_;
  std::vector<PoolExtent*> live_;
  std::uint64_t point_ = 0;
};

TEST(Extents, AgreeWithARangeOfUnits) {
  const std::uint64_t steps = scaled(2'000'000, 10'000);
  constexpr std::uint64_t kLife = 5000;
  for (std::uint64_t done = 0; done < steps; done += kLife) {
    ExtentsModel model(seed() + done, done / kLife % 2 == 0 ? Extents::Fit::first : Extents::Fit::best);
    for (std::uint64_t i = 0; i < kLife; ++i) {
      model.step();
      model.check();
      ASSERT_FALSE(HasFailure()) << "step " << i << " of the life from " << done << ", seed " << seed();
    }
  }
  did(std::to_string(steps) + " steps, seed " + std::to_string(seed()));
}

TEST(CellMap, AgreesWithAListOfCells) {
  Random random(seed());
  CellMap cells;
  std::vector<bool> used(CellMap::kCells);
  std::map<std::uint32_t, std::uint32_t> runs;  // taken, by their first cell
  const auto first_fit = [&](std::uint32_t count) {
    std::uint32_t length = 0;
    for (std::uint32_t i = 0; i < CellMap::kCells; ++i) {
      length = used[i] ? 0 : length + 1;
      if (length == count) return i + 1 - count;
    }
    return CellMap::kNone;
  };
  const auto longest = [&] {
    std::uint32_t most = 0;
    std::uint32_t length = 0;
    for (const bool one : used) most = std::max(most, length = one ? 0 : length + 1);
    return most;
  };
  const auto mark = [&](std::uint32_t first, std::uint32_t count, bool value) { std::fill_n(used.begin() + first, count, value); };
  const std::uint64_t steps = scaled(500'000, 5000);
  std::uint64_t refused = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::uint64_t kind = random.below(100);
    const auto count = static_cast<std::uint32_t>(1 + random.below(random.one_in(50) ? CellMap::kCells + 1 : 130));
    if (kind < 50) {
      const std::uint32_t expected = first_fit(count);
      ASSERT_EQ(cells.take(count), expected) << "at step " << step << ", seed " << seed();
      if (expected == CellMap::kNone) {
        ++refused;
        ASSERT_EQ(cells.longest(), longest());
        continue;
      }
      mark(expected, count, true);
      runs.emplace(expected, count);
    } else if (!runs.empty()) {
      auto run = runs.lower_bound(static_cast<std::uint32_t>(random.below(CellMap::kCells)));
      if (run == runs.end()) run = runs.begin();
      if (kind < 70) {
        const std::uint32_t end = run->first + run->second;
        const bool fits =
            end + count <= CellMap::kCells && std::find(used.begin() + end, used.begin() + end + count, true) == used.begin() + end + count;
        ASSERT_EQ(cells.extend(end, count), fits);
        if (!fits) continue;
        mark(end, count, true);
        run->second += count;
      } else {
        cells.give(run->first, run->second);
        mark(run->first, run->second, false);
        runs.erase(run);
      }
    }
    ASSERT_EQ(cells.used(), static_cast<std::uint32_t>(std::count(used.begin(), used.end(), true)));
    ASSERT_GE(cells.longest(), longest());
    const auto from = static_cast<std::uint32_t>(random.below(CellMap::kCells + 1));
    ASSERT_EQ(cells.next_used(from), static_cast<std::uint32_t>(std::find(used.begin() + from, used.end(), true) - used.begin()));
  }
  EXPECT_GT(refused, 0U);
  did(std::to_string(steps) + " operations, " + std::to_string(refused) + " refused; seed " + std::to_string(seed()));
}

TEST(Inbox, GivesBackWhatWasPutInInOrderAndRefusesMore) {
  const auto inbox = std::make_unique<Inbox>();
  EXPECT_EQ(inbox->get().serial, 0U);
  for (int round = 0; round < 5; ++round) {
    for (std::uint32_t i = 1; i <= Inbox::kEntries; ++i) ASSERT_TRUE(inbox->put({.serial = i, .block = BlockRef(2 * i)}));
    EXPECT_FALSE(inbox->put({.serial = 1, .block = BlockRef(1)})) << "it is full";
    for (std::uint32_t i = 1; i <= Inbox::kEntries; ++i) {
      const Inbox::Message message = inbox->get();
      ASSERT_EQ(message.serial, i);
      ASSERT_EQ(message.block.cookie(), 2 * i);
    }
    EXPECT_EQ(inbox->get().serial, 0U);
  }
}

TEST(Inbox, LosesNothingBetweenSeveralSendersAndTheOwner) {
  constexpr std::uint64_t kSenders = 4;
  const std::uint64_t each = scaled(2'000'000, 2000);
  const auto inbox = std::make_unique<Inbox>();
  std::vector<std::thread> senders;
  for (std::uint64_t s = 0; s < kSenders; ++s) {
    senders.emplace_back([&, s] {
      for (std::uint64_t i = 1; i <= each; ++i) {
        const Inbox::Message message{.serial = s << 32 | i, .block = BlockRef(i * 7 + s)};
        while (!inbox->put(message)) std::this_thread::yield();
      }
    });
  }
  std::vector<std::uint64_t> last(kSenders);
  bool right = true;
  for (std::uint64_t got = 0; got < kSenders * each;) {
    const Inbox::Message message = inbox->get();
    if (message.serial == 0) {
      std::this_thread::yield();
      continue;
    }
    ++got;
    const std::uint64_t s = message.serial >> 32;
    const std::uint64_t i = message.serial & 0xffffffff;
    right = right && s < kSenders && i == last[s] + 1 && message.block.cookie() == i * 7 + s;
    if (s < kSenders) last[s] = i;
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(right) << "a message was lost, repeated or torn";
  EXPECT_EQ(inbox->get().serial, 0U);
  did(std::to_string(kSenders * each) + " messages");
}

// What owners do inside their gates and what a closer does while all are closed is mutually exclusive, and each
// happens-before the next.
TEST(ThreadCache, CountsOnWhenItsSerialsBeginAnew) {
  constexpr std::uint64_t kSerials = std::uint64_t{1} << BlockEntry::kOwnerShift;
  const auto cache = std::make_unique<ThreadCache>(PoolFacts{.entries = {}, .small_limit = kSmallLimit, .alignment = 64}, 3);
  BlockEntry entry;
  const BlockRef block(reinterpret_cast<std::uintptr_t>(&entry));
  cache->last_serial = BlockEntry::make_serial(3, kSerials - 2);
  for (const std::uint64_t count : {kSerials - 1, kSerials, kSerials + 1}) {
    const std::uint64_t serial = cache->make_live(block, 0, 64, 0);
    EXPECT_EQ(serial, BlockEntry::make_serial(3, count)) << "of the same cache";
    EXPECT_EQ(entry.serial(), serial);
    EXPECT_EQ(cache->allocations(), count);
  }
}

TEST(Gate, KeepsOwnersAndClosersApart) {
  constexpr std::size_t kOwners = 3;
  constexpr int kClosers = 2;
  const std::uint64_t closes = scaled(200'000, 300);
  struct Owned {
    os::Gate gate{7};
    std::uint64_t a = 0;  // a == b while no thread is inside
    std::uint64_t b = 0;
    std::uint64_t entered = 0;
  };
  std::mutex mutex;  // of the closers
  std::vector<Owned> owned(kOwners);
  std::atomic<int> closers_left{kClosers};
  std::atomic<bool> right{true};
  std::uint64_t added = 0;  // by closers
  std::vector<std::thread> threads;
  for (Owned& mine : owned) {
    threads.emplace_back([&] {
      while (closers_left.load() > 0) {
        if (mine.gate.approach() != 7) {  // closed, or in use as a spin lock
          mine.gate.leave();
          while (!mine.gate.try_lock()) {
            const std::lock_guard wait(mutex);
          }
          if (mine.a != mine.b) right = false;
          ++mine.a;
          ++mine.b;
          ++mine.entered;
          mine.gate.unlock();
          continue;
        }
        if (mine.a != mine.b) right = false;
        ++mine.a;
        ++mine.b;
        ++mine.entered;
        mine.gate.leave();
      }
    });
  }
  for (int c = 0; c < kClosers; ++c) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < closes; ++i) {
        const std::lock_guard lock(mutex);
        for (Owned& one : owned) one.gate.close();
        os::fence_all_threads();
        for (Owned& one : owned) one.gate.drain();
        os::fence_all_threads();
        for (Owned& one : owned) {
          if (one.a != one.b) right = false;
          ++one.a;
          ++one.b;
        }
        ++added;
        os::fence_all_threads();
        for (Owned& one : owned) one.gate.open();
      }
      --closers_left;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(right) << "someone saw the middle of another's work";
  for (const Owned& one : owned) {
    EXPECT_EQ(one.a, one.entered + added) << "an addition was lost";
    EXPECT_EQ(one.b, one.a);
  }
  did(std::to_string(added) +
      " closes, with a fence for all threads: " + std::to_string(static_cast<int>(os::has_fence_for_all_threads())));
}

}  // namespace
}  // namespace berth::testing

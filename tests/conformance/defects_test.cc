// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <ostream>
#include <set>

#include "conformance/allocator_suite.h"
#include "conformance/backend_suite.h"
#include "memory/adaptor.h"

// Are the conformance suites any good? Each test here plants one defect and expects the suite to find it.
namespace berth::testing {

using namespace internal::memory;
namespace {

enum class AllocatorDefect {
  none,
  alignment_ignored,
  tag_dropped,
  stream_dropped,
  blocks_overlap,
  range_too_short,
  count_off_by_one,
  double_free_accepted,
  foreign_free_accepted,
  hold_ignored,
  serial_reused,
  frees_dropped,
  growth_uncounted,
  growth_promised,
  holders_by_default,
  freed_found,
  uses_forgotten
};

class DefectiveAllocator : public Adaptor<Allocator> {
 public:
  DefectiveAllocator(AllocatorDefect defect, std::shared_ptr<Allocator> upstream)
      : Adaptor("defective", std::move(upstream)), defect_(defect) {}

  Status obtain(const Request& request, Block& block) noexcept override {
    Request changed = request;
    if (defect_ == AllocatorDefect::alignment_ignored) changed.alignment = 16;
    if (defect_ == AllocatorDefect::tag_dropped) changed.tag = {};
    if (defect_ == AllocatorDefect::stream_dropped) changed.stream = {};
    if (defect_ == AllocatorDefect::blocks_overlap) changed.bytes += 64;
    Status done = upstream_->obtain(changed, block);
    if (!done) return done;
    if (defect_ == AllocatorDefect::tag_dropped) block.tag = {};
    if (defect_ == AllocatorDefect::stream_dropped) block.stream_id = 0;
    if (defect_ == AllocatorDefect::blocks_overlap) {
      // Every second block overlaps the one before it, 32 bytes further on.
      if (++calls_ % 2 == 0 && last_.bytes >= request.bytes && last_.data != nullptr) {
        block.data = static_cast<std::byte*>(last_.data) + 32;
      }
      last_ = block;
    }
    if (defect_ == AllocatorDefect::serial_reused) block.serial = 1;
    if (defect_ == AllocatorDefect::freed_found) {
      const std::lock_guard lock(mutex_);
      last_ = block;
    }
    return done;
  }

  BlockVerdict give_back(const Block& given, When when, Block* known) noexcept override {
    Block block = given;
    if (defect_ == AllocatorDefect::frees_dropped && ++calls_ % 5 == 0) return BlockVerdict::ok;
    if (defect_ == AllocatorDefect::serial_reused) block.serial = 0;
    const BlockVerdict freed = upstream_->give_back(block, when, known);
    if (freed == BlockVerdict::double_free && defect_ == AllocatorDefect::double_free_accepted) return BlockVerdict::ok;
    if (freed == BlockVerdict::foreign && defect_ == AllocatorDefect::foreign_free_accepted) return BlockVerdict::ok;
    return freed;
  }

  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override {
    return defect_ == AllocatorDefect::uses_forgotten ? Result<BlockVerdict>(BlockVerdict::ok) : upstream_->note_use(block, stream);
  }

  Stats stats() const override {
    Stats stats = upstream_->stats();
    if (defect_ == AllocatorDefect::count_off_by_one && stats.live_blocks > 0) ++stats.in_use_bytes;
    stats.in_use_bytes -= uncounted_;
    return stats;
  }

  bool grow(Block& block, std::size_t bytes) noexcept override {
    const std::size_t before = block.bytes;
    if (defect_ == AllocatorDefect::growth_promised) block.bytes = bytes;
    if (!upstream_->grow(block, bytes)) return false;
    if (defect_ == AllocatorDefect::growth_uncounted) uncounted_ = bytes - before;
    return true;
  }

  std::vector<Holder> holders() const override {
    return defect_ == AllocatorDefect::holders_by_default ? std::vector<Holder>() : upstream_->holders();
  }

  std::span<const std::byte> range() const noexcept override {
    const std::span<const std::byte> range = upstream_->range();
    return defect_ == AllocatorDefect::range_too_short ? range.first(64) : range;
  }

  Result<bool> locate(Block& block) noexcept override {
    const std::lock_guard lock(mutex_);
    if (defect_ == AllocatorDefect::freed_found && block.data == last_.data) {
      block = last_;
      return true;
    }
    return upstream_->locate(block);
  }

  void begin_hold() noexcept override {
    if (defect_ != AllocatorDefect::hold_ignored) upstream_->begin_hold();
  }
  void end_hold() noexcept override {
    if (defect_ != AllocatorDefect::hold_ignored) upstream_->end_hold();
  }

 private:
  const AllocatorDefect defect_;
  std::atomic<std::uint64_t> calls_{0};
  std::size_t uncounted_ = 0;
  std::mutex mutex_;  // of last_, where a check has several threads
  Block last_;
};

// Dropped frees leak; on a simulated device the leak is not one of the test program.
AllocatorSubject defective_on_sim(AllocatorDefect defect) {
  return {"defective",
          [defect]() -> std::shared_ptr<Allocator> { return std::make_shared<DefectiveAllocator>(defect, direct(make_sim({}))); }};
}

AllocatorSubject defective(AllocatorDefect defect) {
  return {"defective", [defect]() -> std::shared_ptr<Allocator> { return std::make_shared<DefectiveAllocator>(defect, direct("cpu")); }};
}

// Runs all checks, or the named ones.
bool found_by(const AllocatorSubject& subject, std::set<std::string_view> checks = {}) {
  Report report;
  for (const AllocatorCheck& check : allocator_checks()) {
    if (checks.empty() || checks.contains(check.name)) check.run(subject, report);
  }
  return !report.ok();
}

TEST(PlantedDefects, NoDefectPasses) {
  const Report report = check_allocator(defective(AllocatorDefect::none));
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(PlantedDefects, AlignmentIgnoredIsFound) { EXPECT_TRUE(found_by(defective(AllocatorDefect::alignment_ignored))); }
TEST(PlantedDefects, TagDroppedIsFound) { EXPECT_TRUE(found_by(defective(AllocatorDefect::tag_dropped))); }
TEST(PlantedDefects, StreamDroppedIsFound) { EXPECT_TRUE(found_by(defective(AllocatorDefect::stream_dropped))); }
TEST(PlantedDefects, CountOffByOneIsFound) { EXPECT_TRUE(found_by(defective(AllocatorDefect::count_off_by_one))); }
TEST(PlantedDefects, DoubleFreeAcceptedIsFound) { EXPECT_TRUE(found_by(defective_on_sim(AllocatorDefect::double_free_accepted))); }
TEST(PlantedDefects, ForeignFreeAcceptedIsFound) { EXPECT_TRUE(found_by(defective_on_sim(AllocatorDefect::foreign_free_accepted))); }
TEST(PlantedDefects, HoldIgnoredIsFound) { EXPECT_TRUE(found_by(defective_on_sim(AllocatorDefect::hold_ignored))); }
TEST(PlantedDefects, SerialReusedIsFound) { EXPECT_TRUE(found_by(defective_on_sim(AllocatorDefect::serial_reused))); }
TEST(PlantedDefects, GrowthUncountedIsFound) {
  EXPECT_TRUE(found_by({"defective",
                        []() -> std::shared_ptr<Allocator> {
                          return std::make_shared<DefectiveAllocator>(AllocatorDefect::growth_uncounted, arena("cpu", 32_MiB));
                        }},
                       {"GrowsInPlaceOrNotAtAll"}));
}
TEST(PlantedDefects, GrowthPromisedIsFound) { EXPECT_TRUE(found_by(defective_on_sim(AllocatorDefect::growth_promised))); }
TEST(PlantedDefects, HoldersLeftOutAreFound) { EXPECT_TRUE(found_by(defective(AllocatorDefect::holders_by_default))); }
TEST(PlantedDefects, FreedBlocksThatAreFoundAreFound) { EXPECT_TRUE(found_by(defective(AllocatorDefect::freed_found))); }
TEST(PlantedDefects, FreesDroppedIsFound) { EXPECT_TRUE(found_by(defective_on_sim(AllocatorDefect::frees_dropped))); }

TEST(PlantedDefects, UsesForgottenAreFound) {
  for (const char* strategy : {"direct", "pool"}) {
    const AllocatorSubject subject{"defective", [strategy]() -> std::shared_ptr<Allocator> {
                                     const Device device = make_sim({.background = false});
                                     return std::make_shared<DefectiveAllocator>(AllocatorDefect::uses_forgotten,
                                                                                 make_allocator(strategy, device));
                                   }};
    EXPECT_TRUE(found_by(subject, {"MindsEveryStreamOfABlock"})) << strategy;
  }
}

// Memory handed out twice would corrupt the test program itself. So here it comes from an arena, which keeps no
// metadata in it, and only the check that must find the defect runs.
TEST(PlantedDefects, OverlappingBlocksAreFound) {
  const AllocatorSubject subject{.name = "overlapping",
                                 .make = []() -> std::shared_ptr<Allocator> {
                                   return std::make_shared<DefectiveAllocator>(AllocatorDefect::blocks_overlap, arena("cpu", 32_MiB));
                                 },
                                 .returns_at_once = false};
  const MisuseHandler before = set_misuse_handler([](const Misuse&) noexcept {});
  EXPECT_TRUE(found_by(subject, {"KeepsBlocksApart"}));
  set_misuse_handler(before);
}

TEST(PlantedDefects, ARangeTooShortIsFound) {
  const AllocatorSubject subject{.name = "too short", .make = []() -> std::shared_ptr<Allocator> {
                                   return std::make_shared<DefectiveAllocator>(AllocatorDefect::range_too_short, pool("cpu"));
                                 }};
  EXPECT_TRUE(found_by(subject, {"HasItsBlocksInItsRange"}));
}

TEST(PlantedDefects, LimitOffByOneIsFound) {
  const AllocatorSubject subject{.name = "limit", .make = [] { return limit(direct("cpu"), 40_MiB + 1); }, .limit_bytes = 40_MiB};
  EXPECT_TRUE(found_by(subject, {"KeepsToItsLimit"}));
  const AllocatorSubject stingy{.name = "limit", .make = [] { return limit(direct("cpu"), 40_MiB - 1); }, .limit_bytes = 40_MiB};
  EXPECT_TRUE(found_by(stingy, {"KeepsToItsLimit"}));
}

enum class BackendDefect {
  none,
  copy_short,
  fill_once,
  move_forgets,
  move_cuts_work_off,
  event_early,
  stream_ignored,
  wait_ignored,
  exception_lost,
  alignment_ignored,
  anything_goes,
  batch_without_last,
  batch_outside_stream
};

class DefectiveStream : public StreamState {
 public:
  DefectiveStream(BackendDefect defect, Stream inner) : StreamState(inner.device()), defect_(defect), inner_(std::move(inner)) {}

  Event do_enqueue(std::function<void()> work) override {
    if (defect_ != BackendDefect::exception_lost) return inner_.enqueue(std::move(work));
    return inner_.enqueue([work = std::move(work)] {
      try {
        work();
      } catch (const std::exception&) {  // the request is lost: that is the defect
      }
    });
  }
  Event do_record() override { return defect_ == BackendDefect::event_early ? Event() : inner_.record(); }
  void do_wait(const Event& event) override {
    if (defect_ != BackendDefect::wait_ignored) inner_.wait(event);
  }
  void do_synchronize() override { inner_.synchronize(); }
  const Stream& inner() const { return inner_; }

 private:
  const BackendDefect defect_;
  Stream inner_;
};

// A simulated device seen through a faulty driver.
class DefectiveBackend : public Backend {
 public:
  DefectiveBackend(BackendDefect defect, Backend& real) : Backend(real.device()), defect_(defect), real_(real) {}

  const BackendProperties& properties() const noexcept override { return real_.properties(); }
  MemoryInfo memory_info() const override { return real_.memory_info(); }
  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override {
    return real_.reserve(bytes, defect_ == BackendDefect::alignment_ignored ? properties().unit_bytes : alignment);
  }
  Status commit(void* address, std::size_t bytes) noexcept override { return real_.commit(address, bytes); }
  Status decommit(void* address, std::size_t bytes) noexcept override { return real_.decommit(address, bytes); }
  Status release(void* address, std::size_t bytes) noexcept override { return real_.release(address, bytes); }
  Status move(void* from, void* to, std::size_t bytes) noexcept override {
    if (defect_ != BackendDefect::move_forgets) return real_.move(from, to, bytes);
    (void)real_.decommit(from, bytes).ok();
    return real_.commit(to, bytes);
  }
  Status begin_move(void* from, void* to, std::size_t bytes) noexcept override {
    return defect_ == BackendDefect::move_cuts_work_off ? real_.move(from, to, bytes) : real_.begin_move(from, to, bytes);
  }
  Status end_move(void* from, std::size_t bytes) noexcept override {
    return defect_ == BackendDefect::move_cuts_work_off ? Status() : real_.end_move(from, bytes);
  }
  Status copy(const Transfer& transfer, StreamRef stream) noexcept override {
    Transfer changed = transfer;
    if (defect_ == BackendDefect::copy_short && changed.bytes > 1) --changed.bytes;
    const Status done = real_.copy(changed, inner(stream));
    return defect_ == BackendDefect::anything_goes ? Status() : done;
  }
  Status fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept override {
    return real_.fill(target, defect_ == BackendDefect::fill_once ? pattern.size() : bytes, pattern, inner(stream));
  }
  Status copy_batch(std::span<const Transfer> transfers, StreamRef stream) noexcept override {
    if (defect_ == BackendDefect::batch_without_last && !transfers.empty()) transfers = transfers.first(transfers.size() - 1);
    return Backend::copy_batch(transfers, defect_ == BackendDefect::batch_outside_stream ? StreamRef() : stream);
  }
  Result<Stream> make_stream() noexcept override {
    Result<Stream> made = real_.make_stream();
    if (!made) return made;
    return Stream(std::make_shared<DefectiveStream>(defect_, *made));
  }

 private:
  StreamRef inner(StreamRef stream) const noexcept {
    if (!stream || defect_ == BackendDefect::stream_ignored) return {};
    return static_cast<DefectiveStream*>(stream.operator->())->inner();
  }

  const BackendDefect defect_;
  Backend& real_;
};

bool backend_suite_finds(BackendDefect defect) {
  DefectiveBackend faulty(defect, backend(make_sim({.capacity_bytes = 64_MiB, .seed = 11, .background = false})));
  return !check_backend(faulty).ok();
}

TEST(PlantedDefects, NoBackendDefectPasses) {
  DefectiveBackend sound(BackendDefect::none, backend(make_sim({.capacity_bytes = 64_MiB})));
  const Report report = check_backend(sound);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(PlantedDefects, ShortCopyIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::copy_short)); }
TEST(PlantedDefects, FillThatDoesNotRepeatIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::fill_once)); }
TEST(PlantedDefects, MoveThatForgetsIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::move_forgets)); }
TEST(PlantedDefects, MoveThatCutsWorkOffIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::move_cuts_work_off)); }
TEST(PlantedDefects, BatchThatLosesACopyIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::batch_without_last)); }
TEST(PlantedDefects, BatchOutsideItsStreamIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::batch_outside_stream)); }
TEST(PlantedDefects, EarlyEventIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::event_early)); }
TEST(PlantedDefects, CopyOutsideItsStreamIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::stream_ignored)); }
TEST(PlantedDefects, IgnoredWaitIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::wait_ignored)); }
TEST(PlantedDefects, LostExceptionIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::exception_lost)); }
TEST(PlantedDefects, RangeOffItsAlignmentIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::alignment_ignored)); }
TEST(PlantedDefects, UnnoticedIllegalAddressIsFound) { EXPECT_TRUE(backend_suite_finds(BackendDefect::anything_goes)); }

}  // namespace
}  // namespace berth::testing

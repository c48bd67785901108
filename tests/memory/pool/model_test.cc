// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/sanitizers.h"
#include "berth/base/checked.h"
#include "support/everything.h"
#include "support/misuse_log.h"
#include "support/scale.h"
#include "support/test_clock.h"

// Long random operations on a pool against a simple model: a map from addresses to live blocks, and a few sums.
namespace berth::testing {

using namespace internal;
namespace {

constexpr std::uint64_t kFullSteps = kAddressSanitizer ? 5'000'000 : 20'000'000;

struct Subject {
  const char* name;
  std::size_t page_bytes;       // of a simulated device; 0: the host
  std::size_t capacity_bytes;   // of the device, or the pool's limit
  std::size_t most_live;        // blocks
  bool is_private = false;      // a private pool of one that is otherwise idle
  std::size_t piece_bytes = 0;  // of a simulated device that commits in pieces
  bool has_regions = false;     // as if threads waited for one another, for all but the smallest blocks
};

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

constexpr std::size_t kMark = 16;  // bytes at the ends of a device's block that identify it

struct Live {
  Block block;
  std::uint64_t value;  // the seed of its contents
};

class PoolModel {
 public:
  PoolModel(std::shared_ptr<Allocator> parent, const Subject& subject, std::uint64_t seed, std::size_t most_live)
      : parent_(std::move(parent)),
        pool_(subject.is_private ? private_pool(parent_, {.fixed_pages = false}) : parent_),
        subject_(subject),
        random_(seed),
        most_live_(most_live) {
    if (subject.is_private) parent_->reserve(subject.capacity_bytes / 4);
  }
  ~PoolModel() {
    hold_.reset();
    for (const auto& [begin, live] : live_) pool_->deallocate(live.block);
  }

  void step();
  void check_figures() const;
  void audit() const {
    ASSERT_EQ(pool_->audit(), "");
    if (subject_.is_private) {
      ASSERT_EQ(parent_->audit(), "");
    }
  }

  std::uint64_t refusals = 0;
  std::uint64_t grown = 0;

 private:
  std::size_t any_size();
  std::size_t any_alignment();
  std::map<std::uintptr_t, Live>::iterator any_live();
  void allocate(std::size_t bytes, std::size_t alignment);
  void enter(const Block& block);
  void refuse(std::size_t bytes);
  void free_one();
  void grow_one();
  void free_again();
  void trim();
  void reserve();
  void begin_or_end_hold();

  void write(const Live& live) const;
  void check_contents(const Live& live) const;
  bool on_host() const { return subject_.page_bytes == 0; }

  std::shared_ptr<Allocator> parent_;  // of a private pool; else the pool itself
  std::shared_ptr<Allocator> pool_;
  Subject subject_;
  Random random_;
  std::size_t most_live_;
  bool growing_ = true;
  std::optional<Hold> hold_;
  std::size_t held_committed_ = 0;
  MisuseLog log_;
  TestClock clock_;

  std::map<std::uintptr_t, Live> live_;
  std::vector<Block> gone_;  // some freed blocks
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t frees_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t misuses_ = 0;
};

std::size_t PoolModel::any_size() {
  const std::uint64_t kind = random_.below(100);
  const std::uint64_t bits = random_.below(kind < 70 ? 15 : kind < 95 ? 19 : 23);
  const std::size_t bytes = (std::size_t{1} << bits) + random_.below(std::uint64_t{1} << bits);
  return random_.one_in(4) ? std::size_t{1} << bits : bytes;
}

std::size_t PoolModel::any_alignment() {
  return random_.one_in(8) ? std::min(std::size_t{1} << random_.below(22), pool_->backend().properties().max_alignment) : 0;
}

std::map<std::uintptr_t, Live>::iterator PoolModel::any_live() {
  const auto from = live_.lower_bound(live_.begin()->first + random_.below(live_.rbegin()->first - live_.begin()->first + 1));
  return from == live_.end() ? live_.begin() : from;
}

// Every byte of small host blocks, the ends and one byte of each page of large ones; the ends of blocks of a
// device.
void PoolModel::write(const Live& live) const {
  auto* const begin = static_cast<std::byte*>(live.block.data);
  const std::size_t bytes = live.block.bytes;
  if (!on_host()) {
    std::array<std::byte, kMark> pattern{};
    std::memcpy(pattern.data(), &live.value, sizeof live.value);
    if (bytes < 2 * kMark) return;
    ASSERT_TRUE(pool_->backend().fill(begin, kMark, pattern, {}).ok());
    ASSERT_TRUE(pool_->backend().fill(begin + bytes - kMark, kMark, pattern, {}).ok());
    return;
  }
  const auto value = static_cast<unsigned char>(live.value);
  if (bytes <= 4096) {
    std::memset(begin, value, bytes);
    return;
  }
  for (std::size_t at = 0; at < bytes; at += 4096) begin[at] = std::byte{value};
  begin[bytes - 1] = std::byte{value};
}

void PoolModel::check_contents(const Live& live) const {
  const auto* const begin = static_cast<const std::byte*>(live.block.data);
  const std::size_t bytes = live.block.bytes;
  if (!on_host()) {
    if (bytes < 2 * kMark) return;
    for (const std::byte* const at : {begin, begin + bytes - kMark}) {
      std::uint64_t found = 0;
      const Transfer transfer{.target = &found, .target_device = {}, .source = at, .source_device = pool_->device(), .bytes = sizeof found};
      ASSERT_TRUE(pool_->backend().copy(transfer, {}).ok());
      ASSERT_EQ(found, live.value) << "a block of " << bytes << " bytes was written over";
    }
    return;
  }
  const std::byte value{static_cast<unsigned char>(live.value)};
  const std::size_t stride = bytes <= 4096 ? 1 : 4096;
  for (std::size_t at = 0; at < bytes; at += stride) ASSERT_EQ(begin[at], value) << "byte " << at << " of " << bytes << " was written over";
  ASSERT_EQ(begin[bytes - 1], value);
}

void PoolModel::enter(const Block& block) {
  const auto begin = reinterpret_cast<std::uintptr_t>(block.data);
  const std::size_t alignment = std::max(block.alignment, pool_->backend().properties().alignment);
  ASSERT_EQ(begin % alignment, 0U) << block.bytes << " bytes";
  const auto after = live_.lower_bound(begin);
  if (after != live_.end()) {
    ASSERT_LE(begin + block.bytes, after->first) << "two blocks overlap";
  }
  if (after != live_.begin()) {
    const Live& before = std::prev(after)->second;
    ASSERT_LE(std::prev(after)->first + before.block.bytes, begin) << "two blocks overlap";
  }
  ++allocations_;
  in_use_ += block.bytes;
  peak_ = std::max(peak_, in_use_);
  const Live live{block, random_.next()};
  write(live);
  live_.emplace(begin, live);
}

void PoolModel::refuse(std::size_t bytes) {
  ++refusals;
  ++failures_;
  if (hold_) return;
  ASSERT_GT(in_use_ + bytes, subject_.capacity_bytes / 2) << "refused " << bytes << " bytes though half of the memory is free";
}

void PoolModel::allocate(std::size_t bytes, std::size_t alignment) {
  if (random_.one_in(2)) {
    const std::optional<Block> block = pool_->try_allocate({.bytes = bytes, .alignment = alignment});
    block ? enter(*block) : refuse(bytes);
    return;
  }
  try {
    enter(pool_->allocate({.bytes = bytes, .alignment = alignment}));
  } catch (const OutOfMemory& error) {
    ASSERT_FALSE(hold_);
    ASSERT_EQ(error.report().in_use_bytes, in_use_);
    ASSERT_EQ(error.report().requested_bytes, bytes);
    refuse(bytes);
  } catch (const AccessError& error) {
    ASSERT_TRUE(hold_) << error.what();
    refuse(bytes);
  }
}

void PoolModel::free_one() {
  if (live_.empty()) return;
  const auto chosen = any_live();
  const Live live = chosen->second;
  check_contents(live);
  live_.erase(chosen);
  in_use_ -= live.block.bytes;
  ++frees_;
  if (random_.one_in(30)) {
    pool_->deallocate_now(live.block);
    const std::size_t page = subject_.page_bytes;
    const auto begin = reinterpret_cast<std::uintptr_t>(live.block.data);
    // A small block is on the pages of its slab, and a piece is decommitted as a whole.
    if (!hold_ && !on_host() && subject_.piece_bytes == 0 && live.block.bytes > 128_KiB &&
        *try_align_up(begin, page) + page <= begin + live.block.bytes) {
      std::byte byte{};
      const Transfer transfer{.target = &byte,
                              .target_device = {},
                              .source = reinterpret_cast<void*>(*try_align_up(begin, page)),
                              .source_device = pool_->device(),
                              .bytes = 1};
      ASSERT_FALSE(pool_->backend().copy(transfer, {}).ok()) << "a whole page of a block freed now is still committed";
    }
  } else if (random_.one_in(30)) {
    pool_->deallocate(pool_->block_at(live.block.data, live.block.bytes));
  } else {
    pool_->deallocate(live.block);
  }
  ASSERT_EQ(log_.reported().size(), misuses_);
  if (gone_.size() < 64) gone_.push_back(live.block);
  gone_[random_.below(gone_.size())] = live.block;
}

void PoolModel::grow_one() {
  if (live_.empty()) return;
  const auto chosen = any_live();
  Live& live = chosen->second;
  check_contents(live);
  const Block before = live.block;
  const std::size_t more = random_.one_in(3) ? any_size() : 1 + random_.below(before.bytes / 8 + 1);
  if (!pool_->try_grow(live.block, before.bytes + more)) {
    ASSERT_EQ(live.block, before);
    return;
  }
  ++grown;
  ASSERT_EQ(live.block.data, before.data);
  ASSERT_EQ(live.block.bytes, before.bytes + more);
  const auto after = std::next(chosen);
  if (after != live_.end()) {
    ASSERT_LE(chosen->first + live.block.bytes, after->first) << "it grew into its neighbour";
  }
  check_contents({before, live.value});
  in_use_ += more;
  peak_ = std::max(peak_, in_use_);
  ++allocations_;
  ++frees_;
  write(live);
  if (gone_.size() < 64) gone_.push_back(before);
  gone_[random_.below(gone_.size())] = before;
}

void PoolModel::free_again() {
  if (gone_.empty()) return;
  const Block& block = gone_[random_.below(gone_.size())];
  random_.one_in(8) ? pool_->deallocate_now(block) : pool_->deallocate(block);
  ASSERT_EQ(log_.reported().size(), ++misuses_);
  ASSERT_EQ(log_.reported().back(), MisuseKind::double_free);
}

void PoolModel::trim() {
  const std::size_t keep = random_.one_in(2) ? 0 : random_.below(subject_.capacity_bytes / 4);
  const Stats before = pool_->stats();
  pool_->trim(keep);
  const Stats after = pool_->stats();
  ASSERT_LE(after.committed_bytes, before.committed_bytes);
  if (hold_) {
    ASSERT_EQ(after, before);
  } else if (keep >= before.cached_bytes) {
    ASSERT_EQ(after.committed_bytes, before.committed_bytes) << "more was given back than asked";
  }
}

void PoolModel::reserve() {
  const std::size_t bytes = any_size();
  try {
    pool_->reserve(bytes);
  } catch (const OutOfMemory&) {
    ASSERT_FALSE(hold_);
    return;
  } catch (const AccessError&) {
    ASSERT_TRUE(hold_);
    return;
  }
  if (bytes <= 128_KiB) return;
  const std::uint64_t commits = pool_->stats().commits;
  const std::optional<Block> block = pool_->try_allocate({.bytes = bytes});
  ASSERT_TRUE(block) << "what was reserved is not to be had";
  enter(*block);
  ASSERT_EQ(pool_->stats().commits, commits) << "the device was asked for what was reserved";
}

void PoolModel::begin_or_end_hold() {
  if (hold_) {
    ASSERT_EQ(pool_->stats().committed_bytes, held_committed_) << "a held device was asked for memory, or was given some";
    hold_.reset();
    return;
  }
  hold_.emplace(pool_->hold());
  held_committed_ = pool_->stats().committed_bytes;
}

void PoolModel::step() {
  if (live_.empty() || live_.size() >= most_live_ || random_.one_in(most_live_ * 2)) growing_ = live_.size() < most_live_ / 2;
  switch (const std::uint64_t kind = random_.below(1000)) {
    case 0: return trim();
    case 10: clock_.advance(std::chrono::seconds(1 + random_.below(12))); return pool_->trim_idle();
    case 1: return reserve();
    case 2: return begin_or_end_hold();
    case 3:
    case 4: return free_again();
    case 6:
    case 7:
    case 8:
    case 9: return grow_one();
    case 5: return allocate(subject_.capacity_bytes + 1 + random_.below(4_MiB), 0);
    default: return kind < (growing_ ? 600U : 400U) ? allocate(any_size(), any_alignment()) : free_one();
  }
}

void PoolModel::check_figures() const {
  const Stats now = pool_->stats();
  ASSERT_EQ(now.in_use_bytes, in_use_);
  ASSERT_EQ(now.live_blocks, live_.size());
  ASSERT_EQ(now.allocations, allocations_);
  ASSERT_EQ(now.frees, frees_);
  ASSERT_EQ(now.failures, failures_);
  if (subject_.has_regions)
    ASSERT_GE(now.peak_in_use_bytes, in_use_);  // the order of requests in regions and elsewhere is not known
  else
    ASSERT_EQ(now.peak_in_use_bytes, peak_);
  ASSERT_EQ(now.in_use_bytes + now.cached_bytes, now.committed_bytes);
  ASSERT_LE(now.in_use_bytes, now.committed_bytes);
  ASSERT_LE(now.committed_bytes, now.peak_committed_bytes);
  ASSERT_LE(now.peak_committed_bytes, subject_.capacity_bytes);
  if (!on_host()) {
    const std::size_t of_parent = subject_.is_private ? parent_->stats().committed_bytes : 0;
    ASSERT_EQ(sim_control(pool_->device()).committed_bytes(), now.committed_bytes + of_parent) << "the device has another opinion";
  }
}

class PoolAgainstModel : public ::testing::TestWithParam<Subject> {
 protected:
  std::shared_ptr<Allocator> make() {
    const Subject& subject = GetParam();
    const std::uint32_t waits = subject.has_regions ? 0 : PoolOptions::kNoRegions;
    const std::size_t small = subject.has_regions ? 16_KiB : 128_KiB;
    if (subject.page_bytes == 0) return pool("cpu", {.limit_bytes = subject.capacity_bytes, .small_bytes = small, .region_waits = waits});
    if (!device_) {
      device_ = make_sim({.capacity_bytes = subject.capacity_bytes,
                          .page_bytes = subject.page_bytes,
                          .piece_bytes = subject.piece_bytes,
                          .background = false});
    }
    return pool(*device_, {.small_bytes = small, .region_waits = waits});
  }

 private:
  std::optional<Device> device_;
};

// Many short lifetimes; the structure is audited at every step.
TEST_P(PoolAgainstModel, AgreesAtEveryStepWhileSmall) {
  const std::uint64_t steps = scaled(kFullSteps / 100, 500);
  constexpr std::uint64_t kLife = 500;
  std::uint64_t refusals = 0;
  for (std::uint64_t done = 0; done < steps; done += kLife) {
    PoolModel model(make(), GetParam(), seed() + done, 4 + done / kLife % 40);
    for (std::uint64_t i = 0; i < kLife; ++i) {
      model.step();
      model.check_figures();
      model.audit();
      ASSERT_FALSE(HasFailure()) << "at step " << i << " of the life from " << done << ", seed " << seed();
    }
    refusals += model.refusals;
  }
  did(std::to_string(steps) + " operations, each audited; " + std::to_string(refusals) + " refused; seed " + std::to_string(seed()));
}

TEST_P(PoolAgainstModel, AgreesOverALongLife) {
  const std::uint64_t steps = scaled(kFullSteps);
  PoolModel model(make(), GetParam(), seed(), GetParam().most_live);
  for (std::uint64_t i = 0; i < steps; ++i) {
    model.step();
    if (i % 64 == 0) model.check_figures();
    if (i % 1000 == 0) model.audit();
    ASSERT_FALSE(HasFailure()) << "at step " << i << ", seed " << seed();
  }
  model.check_figures();
  model.audit();
  EXPECT_GT(model.grown, 0U);
  did(std::to_string(steps) + " operations, " + std::to_string(model.refusals) + " refused, " + std::to_string(model.grown) +
      " blocks grown; seed " + std::to_string(seed()));
}

INSTANTIATE_TEST_SUITE_P(On, PoolAgainstModel,
                         ::testing::Values(Subject{"cpu", 0, 256_MiB, 4000}, Subject{"sim_64KiB", 64_KiB, 64_MiB, 4000},
                                           Subject{"sim_2MiB", 2_MiB, 128_MiB, 4000}, Subject{"sim_4KiB", 4_KiB, 32_MiB, 2000},
                                           Subject{"private_sim_64KiB", 64_KiB, 64_MiB, 4000, true},
                                           Subject{"sim_in_pieces", 64_KiB, 64_MiB, 4000, false, 1_MiB},
                                           Subject{"cpu_with_regions", 0, 512_MiB, 4000, false, 0, true},
                                           Subject{"sim_2MiB_with_regions", 2_MiB, 256_MiB, 4000, false, 0, true},
                                           Subject{"sim_in_pieces_with_regions", 64_KiB, 256_MiB, 4000, false, 1_MiB, true},
                                           Subject{"private_sim_in_pieces", 64_KiB, 64_MiB, 4000, true, 1_MiB}),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace berth::testing

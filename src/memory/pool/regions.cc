// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/regions.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <new>

#include "memory/space/page_span.h"
#include "os/system.h"

namespace berth::internal::memory {

namespace {

// A thread may be preempted while it holds a shard: with more shards than processors, the others find one that
// is not locked.
constexpr int kShardsPerProcessor = 4;
constexpr std::uint32_t kPollRegionsEvery = 256;  // frees in a shard, which drive the decay as other frees do
constexpr std::size_t kMostDissolved = 32;        // regions in one step: some tenths of a millisecond
constexpr std::size_t kMuchInRegions = 64_MiB;    // with less, some are half empty by chance

// Threads that replace blocks of random sizes have a quarter of their regions free; where every other block was
// freed, it is half. Sparse is in between.
bool are_sparse(std::size_t regions, std::size_t cells_in_use) noexcept { return cells_in_use < regions * CellMap::kCells / 8 * 5; }

}  // namespace

Regions::Regions(PoolCore& core, StreamBook& book, CacheSet& caches)
    : core_(core),
      book_(book),
      caches_(caches),
      shard_count_(std::clamp(std::bit_ceil(static_cast<std::uint32_t>(kShardsPerProcessor * os::cpu_count())), 1U, kMostShards)),
      shards_(std::make_unique<Shard[]>(shard_count_)) {}

std::uint32_t Regions::own_shard() const noexcept {
  static constinit std::atomic<std::uint32_t> g_threads{0};
  static constinit thread_local std::uint32_t t_number = 0;  // of the thread, from 1
  if (t_number == 0) t_number = g_threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return t_number % shard_count_;
}

Regions::Region* Regions::find(BlockRef entry) const noexcept {
  if (!entry || entry.kind() != BlockKind::medium) return nullptr;
  const std::uint32_t number = entry.group().number.load() & ~BlockGroup::kRegion;
  return number != 0 && number <= regions_.count() ? &regions_[number] : nullptr;
}

// ---- requests

bool Regions::obtain(const Request& request, Block& block, Wait wait) noexcept {
  const std::uint32_t count = cells_of(request.bytes);
  const std::uint32_t own = own_shard();
  Shard* locked = nullptr;
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    Shard& shard = shards_[(own + i) % shard_count_];
    if (shard.longest.load() < count) continue;
    if (!shard.mutex.try_lock()) {
      if (locked == nullptr) locked = &shard;
      continue;
    }
    const bool taken = take(shard, request, block);
    shard.mutex.unlock();
    if (taken) return true;
  }
  if (locked == nullptr || wait == Wait::no) return false;
  const os::Lock lock(locked->mutex);
  return take(*locked, request, block);
}

bool Regions::take(Shard& shard, const Request& request, Block& block) noexcept {
  std::uint32_t cell = 0;
  Region* const region = take_cells(shard, cells_of(request.bytes), cell);
  if (region == nullptr) return false;
  if (region->blocks++ == 0) relink(shard, *region);
  shard.cells += cells_of(request.bytes);
  region->used_in = period_.load();
  const BlockRef entry = region->first.later(cell);
  block.serial = shard.serials.next(core_.usage.taken_serials());
  block.data = entry.data();
  block.cookie = entry.cookie();
  entry->label.store(BlockEntry::make_label(request.allocator_id, request.tag) | BlockEntry::class_and_bytes(0, request.bytes));
  entry->state.store(block.serial);
  shard.usage.allocated(request.bytes);
  if (core_.poisons()) unpoison(block.data, request.bytes);
  return true;
}

// From the region whose longest run is the shortest that is long enough, and only then from one without blocks.
Regions::Region* Regions::take_cells(Shard& shard, std::uint32_t count, std::uint32_t& first) noexcept {
  for (std::uint32_t list = next_list(shard, count); list <= kEmpty; list = next_list(shard, count)) {
    Region* const region = shard.lists[list];
    first = region->cells.take(count);
    if (first != CellMap::kNone) return region;
    relink(shard, *region);  // its longest run is known now: it belongs in a list below
  }
  return nullptr;
}

bool Regions::add(PoolExtent* extent, const Request& request, Block& block) noexcept {
  if (spare_ == nullptr) spare_ = regions_.add([](std::uint32_t number) { return new (std::nothrow) Region(number); });
  Region* const region = spare_;
  if (region == nullptr) return false;
  const BlockRef first = core_.blocks.reserve(extent->begin, extent->bytes) ? core_.entries.take(CellMap::kCells) : BlockRef();
  if (!first) return false;
  spare_ = region->next;
  first.set_group(core_.base() + extent->begin, kCellBytes, BlockGroup::kRegion | region->number);
  core_.blocks.set(extent->begin, extent->bytes, first);
  extent->cookie = first.cookie();
  core_.space.make_untouchable(*extent);
  {
    const Quiet quiet(*this);
    take_shares();  // the pool grows: a peak is near
  }
  Shard& shard = shards_[own_shard()];
  const os::Lock lock(shard.mutex);
  region->shard.store(static_cast<std::uint32_t>(&shard - shards_.get()));
  region->extent = extent;
  region->first = first;
  region->cells = {};
  region->blocks = 0;
  in_use_.store(in_use_.load() + 1);
  shard.regions.store(shard.regions.load() + 1);
  link(shard, *region);
  return take(shard, request, block);
}

// ---- frees and growth

std::optional<Regions::Freed> Regions::free(BlockRef entry, const Block& block) noexcept {
  Freed freed;
  const bool found = with_region(entry, [&](Shard& shard, Region& region) {
    freed.verdict = caches_.judge(entry, block);
    if (freed.verdict != BlockVerdict::ok) return;
    entry->state.store(0);
    shard.usage.freed(block.bytes);
    if (core_.poisons()) poison(block.data, block.bytes);
    region.cells.give(entry.index(), cells_of(block.bytes));
    shard.cells -= cells_of(block.bytes);
    --region.blocks;
    region.used_in = period_.load();
    relink(shard, region);
    const Region* const empty = shard.lists[kEmpty];
    freed.should_poll = ++shard.frees % kPollRegionsEvery == 0 || (empty != nullptr && empty->next != nullptr);
  });
  return found ? std::optional(freed) : std::nullopt;
}

bool Regions::grow(BlockRef entry, Block& block, std::size_t bytes) noexcept {
  bool grown = false;
  (void)with_region(entry, [&](Shard& shard, Region& region) {
    if (bytes > kMostBytes || caches_.judge(entry, block) != BlockVerdict::ok) return;
    const std::uint32_t had = cells_of(block.bytes);
    const std::uint32_t more = cells_of(bytes) - had;
    if (more > 0 && !region.cells.extend(entry.index() + had, more)) return;
    shard.cells += more;
    region.used_in = period_.load();
    shard.usage.grew(block.bytes, bytes);
    if (core_.poisons()) unpoison(block.data, bytes);
    block.serial = shard.serials.next(core_.usage.taken_serials());
    block.bytes = bytes;
    entry->label.store(BlockEntry::make_label(block.allocator_id, entry->tag()) | BlockEntry::class_and_bytes(0, bytes));
    entry->state.store(block.serial);
    grown = true;
  });
  return grown;
}

// ---- lists of a shard

std::uint32_t Regions::list_for(const Region& region) noexcept {
  return region.blocks == 0 ? kEmpty : std::min(region.cells.longest(), kLongest);
}

std::uint32_t Regions::next_list(const Shard& shard, std::uint32_t from) noexcept {
  std::uint64_t bits = shard.some[from / 64] >> from % 64 << from % 64;
  for (std::uint32_t word = from / 64; word < shard.some.size(); bits = ++word < shard.some.size() ? shard.some[word] : 0) {
    if (bits != 0) return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  return kEmpty + 1;
}

void Regions::link(Shard& shard, Region& region) noexcept {
  region.list = list_for(region);
  Region*& first = shard.lists[region.list];
  region.previous = nullptr;
  region.next = first;
  if (first != nullptr) first->previous = &region;
  first = &region;
  shard.some[region.list / 64] |= std::uint64_t{1} << region.list % 64;
  shard.longest.store(std::max(shard.longest.load(), region.list));
}

void Regions::unlink(Shard& shard, Region& region) noexcept {
  Region*& first = shard.lists[region.list];
  (region.previous != nullptr ? region.previous->next : first) = region.next;
  if (region.next != nullptr) region.next->previous = region.previous;
  if (first != nullptr) return;
  shard.some[region.list / 64] &= ~(std::uint64_t{1} << region.list % 64);
  std::uint32_t longest = 0;
  for (std::uint32_t word = 0; word < shard.some.size(); ++word) {
    if (shard.some[word] != 0) longest = word * 64 + static_cast<std::uint32_t>(std::bit_width(shard.some[word])) - 1;
  }
  shard.longest.store(longest);
}

void Regions::relink(Shard& shard, Region& region) noexcept {
  if (region.list == list_for(region)) return;
  unlink(shard, region);
  link(shard, region);
}

// ---- regions that end

bool Regions::dissolve(Shard& shard, Region& region) noexcept {
  if (!core_.space.reserve_splits(3 * std::size_t{region.blocks})) return false;
  unlink(shard, region);
  in_use_.store(in_use_.load() - 1);
  shard.regions.store(shard.regions.load() - 1);
  shard.cells -= region.cells.used();
  PoolExtent* rest = region.extent;
  core_.blocks.set(rest->begin, rest->bytes, {});
  rest->cookie = 0;
  region.first.group().number.store(region.blocks == 0 ? 0 : BlockGroup::kShared | region.blocks);
  const std::size_t begin = rest->begin;
  // The front of what is left, up to an offset in the region; what is left then is nullptr at the end.
  const auto split_at = [&](std::size_t offset) {
    PoolExtent* const front = rest;
    rest = begin + offset < rest->end() ? core_.space.split(rest, begin + offset - rest->begin) : nullptr;
    return front;
  };
  std::size_t end = 0;  // of the last block
  for (std::uint32_t cell = region.cells.next_used(0); cell < CellMap::kCells;) {
    const BlockRef entry = region.first.later(cell);
    const std::size_t bytes = entry->small_bytes();
    if (cell * kCellBytes > end) book_.release(split_at(cell * kCellBytes));
    end = cell * kCellBytes + round_up(bytes, Space::kGrain);
    cell = region.cells.next_used(cell + cells_of(bytes));
    PoolExtent* const extent = split_at(end);
    extent->cookie = entry.cookie();
    extent->requested = bytes;
    entry.set_extent_number(extent->index);
    core_.blocks.set(extent->begin, 1, entry);
  }
  if (rest != nullptr) book_.release(rest);
  if (region.blocks == 0) core_.entries.give_back(region.first);
  region.extent = nullptr;
  region.next = spare_;
  spare_ = &region;
  return true;
}

void Regions::dissolve(BlockRef entry, const Block& block) noexcept {
  (void)with_region(entry, [&](Shard& shard, Region& region) {
    if (caches_.judge(entry, block) == BlockVerdict::ok && dissolve(shard, region)) core_.waits.store(0);
  });
}

// Dissolves regions of a shard for which `wanted(region)`, at most so many. Returns how many.
template <class Wanted>
std::size_t Regions::dissolve_some(Shard& shard, std::size_t most, Wanted wanted) noexcept {
  std::size_t dissolved = 0;
  const os::Lock lock(shard.mutex);
  for (Region* region : shard.lists) {
    while (region != nullptr && dissolved < most) {
      Region* const following = region->next;
      if (wanted(*region) && dissolve(shard, *region)) ++dissolved;
      region = following;
    }
  }
  return dissolved;
}

// In steps, between which others have the mutex. A region that is added meanwhile may stay.
void Regions::dissolve_all() noexcept {
  core_.waits.store(0);
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    while (dissolve_some(shards_[i], kMostDissolved, [](const Region&) { return true; }) == kMostDissolved) {
      const os::Unlock released(core_.mutex);
    }
  }
}

void Regions::end_period() noexcept {
  core_.waits.store(0);
  period_.store(period_.load() + 1);
  has_idle_ = any();
}

bool Regions::dissolve_idle() noexcept {
  if (!has_idle_) return false;
  const std::uint32_t last = period_.load() - 1;
  std::size_t rest = kMostDissolved;
  for (std::uint32_t i = 0; i < shard_count_ && rest > 0; ++i)
    rest -= dissolve_some(shards_[i], rest, [&](const Region& region) { return region.used_in < last; });
  has_idle_ = rest == 0;
  return has_idle_;
}

bool Regions::dissolve_sparse() noexcept {
  std::size_t cells = 0;
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    const os::Lock lock(shards_[i].mutex);
    cells += shards_[i].cells;
  }
  if (in_use_.load() * kRegionBytes < kMuchInRegions || !are_sparse(in_use_.load(), cells)) return false;
  std::size_t rest = kMostDissolved;
  for (std::uint32_t i = 0; i < shard_count_ && rest > 0; ++i)
    rest -= dissolve_some(shards_[i], rest, [](const Region& region) { return are_sparse(1, region.cells.used()); });
  return rest < kMostDissolved;
}

void Regions::tidy() noexcept {
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    const os::Lock lock(shards_[i].mutex);
    core_.usage.take_share(shards_[i].usage);
    Region*& first = shards_[i].lists[kEmpty];
    while (first != nullptr && first->next != nullptr && dissolve(shards_[i], *first)) {
    }
  }
}

// ---- all shards

void Regions::lock_all() const noexcept {
  for (std::uint32_t i = 0; i < shard_count_; ++i) shards_[i].mutex.lock();
}

void Regions::unlock_all() const noexcept {
  for (std::uint32_t i = 0; i < shard_count_; ++i) shards_[i].mutex.unlock();
}

void Regions::after_fork(bool in_child) noexcept {
  for (std::uint32_t i = 0; in_child && i < shard_count_; ++i) shards_[i].mutex.forget_waiters();
  if (in_child) is_adding_ = false;  // by a thread that the child does not have
  unlock_all();
}

void Regions::take_shares() const noexcept {
  for (std::uint32_t i = 0; i < shard_count_; ++i) core_.usage.take_share(shards_[i].usage);
}

std::string Regions::audit() const {
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    if (std::string wrong = audit(shards_[i]); !wrong.empty()) return wrong;
  }
  return {};
}

std::string Regions::audit(const Shard& shard) const {
  std::size_t cells = 0;
  for (std::uint32_t list = 0; list < shard.lists.size(); ++list) {
    const bool known = (shard.some[list / 64] >> list % 64 & 1U) != 0;
    if ((shard.lists[list] != nullptr) != known || (known && shard.longest.load() < list))
      return "regions: a shard does not know which lists are empty";
    for (const Region* region = shard.lists[list]; region != nullptr; region = region->next) {
      if (region->list != list || list != list_for(*region)) return "regions: a region is in the wrong list";
      if (&shards_[region->shard.load()] != &shard) return "regions: a region is in another shard's list";
      if (std::string wrong = audit(*region); !wrong.empty()) return wrong;
      cells += region->cells.used();
    }
  }
  return cells == shard.cells ? "" : "regions: a shard's cells in use are not those of its regions";
}

std::string Regions::audit(const Region& region) const {
  const PoolExtent* const extent = region.extent;
  if (extent == nullptr || extent->state != ExtentState::live || extent->bytes != kRegionBytes || BlockRef(extent->cookie) != region.first)
    return "regions: the extent of a region is not its own";
  if (find(region.first) != &region) return "regions: the group of a region does not lead to it";
  std::uint32_t blocks = 0;
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < CellMap::kCells; ++i) {
    const BlockRef entry = region.first.later(i);
    if (!entry->is_live()) continue;
    ++blocks;
    used += cells_of(entry->small_bytes());
    if (region.cells.next_used(i) != i) return "regions: the cells of a live block are free";
  }
  return blocks == region.blocks && used == region.cells.used() ? "" : "regions: the cells in use are not those of the live blocks";
}

}  // namespace berth::internal::memory

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "memory/holders.h"
#include "memory/pool/pool.h"

// What a pool says of itself: statistics, the out-of-memory report, the audit.
namespace berth::internal::memory {

namespace {

constexpr std::uint32_t kCounted = ~0U;  // an entry's mark while its messages are counted

// BlockVerdict by another thread, though its owner does not know yet.
bool is_on_its_way(const BlockEntry& entry) noexcept {
  const std::uint32_t mark = entry.mark.load();
  return mark != 0 && mark == static_cast<std::uint32_t>(entry.serial.load());
}

}  // namespace

Stats Pool::stats() const {
  const os::Lock lock(mutex_);
  const AllShut shut(*this);
  return stats_now();
}

std::span<const std::byte> Pool::range() const noexcept {
  const os::Lock lock(mutex_);
  if (!space_.is_open()) return {};
  return {space_.base(), space_.size_bytes()};
}

// REQUIRES: the gates are shut.
Pool::Counts Pool::counted() const noexcept {
  Counts all = counts_;
  for_each_cache([&](const ThreadCache& cache) {
    all.allocations += cache.allocations();
    all.frees += cache.frees();
  });
  return all;
}

// REQUIRES: the gates are shut.
Stats Pool::stats_now() const noexcept {
  std::size_t on_the_way = 0;  // freed, and on their way home
  Counts counts = counted();
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS {
    count_bytes(cache);
    cache.inbox.for_each([&](const Inbox::Message& message) {
      BlockEntry& entry = entries_[message.entry];
      if (entry.serial.load() != message.serial || entry.mark.load() == kCounted) return;  // the second of two frees at the same moment
      entry.mark.store(kCounted);
      on_the_way += message.bytes;
      ++counts.frees;
    });
    cache.inbox.for_each([&](const Inbox::Message& message) {
      if (entries_[message.entry].mark.load() == kCounted) entries_[message.entry].mark.store(static_cast<std::uint32_t>(message.serial));
    });
  });
  const Space::Figures& figures = space_.figures();
  const std::size_t in_use = static_cast<std::size_t>(in_use_) - on_the_way;
  return {.in_use_bytes = in_use,
          .cached_bytes = figures.committed - in_use,
          .committed_bytes = figures.committed,
          .peak_in_use_bytes = static_cast<std::size_t>(peak_in_use_),
          .peak_committed_bytes = figures.peak_committed,
          .live_blocks = counts.live(),
          .allocations = counts.allocations,
          .frees = counts.frees,
          .failures = failures_,
          .commits = figures.commits,
          .decommits = figures.decommits};
}

std::string Pool::settings() const {
  const std::string limit = budget_.limit() == SIZE_MAX ? "" : text::join(", at most ", text::bytes(budget_.limit()));
  const std::chrono::milliseconds decay = decay_period_;
  const std::string idle = decay == PoolOptions::kNever ? "kept" : text::join("given back after ", text::duration(decay));
  const std::string what = is_private() ? text::join("private pool on ", device().to_string(), ", sharing pages with pool ", parent_->id())
                                        : text::join("pool on ", device().to_string());
  return text::join(what, limit, fixed_pages_ ? ", pages stay where they are" : text::join(", idle memory ", idle));
}

template <class Visit>
void Pool::for_each_live(Visit visit) const {
  for (std::uint32_t number = 1; number <= entries_.used(); ++number) {
    const BlockEntry& entry = entries_[number];
    if (entry.serial.load() == 0) continue;
    visit(entry, entry.is_large() ? space_.extent(entry.extent())->requested : entry.small_bytes());
  }
}

std::vector<Holder> Pool::holders() const {
  HolderTotals totals;
  {
    const os::Lock lock(mutex_);
    const AllShut shut(*this);
    for_each_live([&](const BlockEntry& entry, std::size_t bytes) {
      if (!is_on_its_way(entry)) totals.add(entry.tag(), bytes);
    });
  }
  return totals.most_first();
}

void Pool::explain(const Failure& failure, OutOfMemoryReport& report) const {
  const os::Lock lock(mutex_);
  const AllShut shut(*this);
  const Stats now = stats_now();
  report.in_use_bytes = now.in_use_bytes;
  report.cached_bytes = now.cached_bytes;
  report.largest_free_run_bytes = space_.longest_cached();
  // The tightest of its own limit and its parent's.
  const bool of_parent = is_private() && parent_->budget_.limit() - parent_->budget_.used() < budget_.limit() - budget_.used();
  const Budget& tightest = of_parent ? parent_->budget_ : budget_;
  const std::size_t below_limit = tightest.limit() - std::min(tightest.limit(), tightest.used());
  const bool limited = below_limit < report.device_free_bytes;
  const std::string_view whose = of_parent ? "its parent's" : "the pool's";
  report.refused_by = limited ? text::join(whose, " limit of ", text::bytes(tightest.limit())) : "the device";
  if (limited) report.limit_bytes = tightest.limit();
  // Free pages can be moved together, so all that is cached counts.
  const std::size_t within_reach = std::min(below_limit, report.device_free_bytes) + space_.cached_bytes();
  if (within_reach < report.requested_bytes) report.would_be_enough_bytes = report.requested_bytes - within_reach;
  report.tried.emplace_back("looked for a free run, in all caches");
  report.tried.emplace_back("moved every free page");
  report.tried.emplace_back(text::join("asked the device: ", failure.why));
}

std::string Pool::audit() const {
  const os::Lock lock(mutex_);
  if (base() == nullptr) return {};
  const AllShut shut(*this);
  return audit_now();
}

std::string Pool::audit_now() const {
  if (budget_.used() > budget_.limit()) return "pool: the limit is exceeded";
  if (std::string wrong = space_.audit(); !wrong.empty()) return wrong;
  if (std::string wrong = slabs_.audit(); !wrong.empty()) return wrong;
  for (std::uint32_t i = 1; i <= cache_count_.load(std::memory_order_relaxed); ++i) {
    if (std::string wrong = audit_cache(*caches_[i].load(std::memory_order_relaxed)); !wrong.empty()) return wrong;
  }
  // What the owners know: blocks on their way home still count, since others may be sending more all the while.
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS { count_bytes(cache); });
  std::size_t bytes = 0;
  std::uint64_t blocks = 0;
  for_each_live([&](const BlockEntry&, std::size_t live) {
    bytes += live;
    ++blocks;
  });
  if (bytes != static_cast<std::size_t>(in_use_)) return "pool: bytes in use are not the sum of the live blocks";
  bool waiting_is_freed = true;
  extra_.for_each_freed(
      [&](ExtraUses::Key key) { waiting_is_freed = waiting_is_freed && entries_[static_cast<std::uint32_t>(key)].serial.load() == 0; });
  if (!waiting_is_freed) return "pool: a block that waits for streams is live";
  if (blocks != counted().live()) return "pool: live blocks are not those the entries say";
  return bytes <= space_.figures().committed ? "" : "pool: more is in use than is committed";
}

std::string Pool::audit_cache(const ThreadCache& cache) const {
  std::size_t granted = 0;
  for (SizeClass c = 0; c < classes_.count(); ++c) {
    const Bin& bin = cache.bins[c];
    granted += bin.capacity() * std::size_t{classes_[c].bytes};
    if (bin.count() > bin.capacity() || bin.capacity() > Bin::kMost) return "pool: a bin holds more than it may";
    for (const BlockEntry* const entry : bin.entries()) {
      if (entry->owner() != cache.number || entry->serial.load() != 0) return "pool: a bin holds a block that is live, or another's";
      if (entry->size_class() != c) return "pool: a bin holds a block of another class";
    }
  }
  if (const BlockEntry* const kept = cache.kept; kept != nullptr) {
    const bool large = kept->is_large() && kept->owner() == cache.number;
    if (!large || space_.extent(kept->extent())->requested != cache.kept_request) return "pool: a cache keeps a block that is not its own";
  }
  return granted == cache.granted ? "" : "pool: the bins' capacities do not add up to what the cache was granted";
}

}  // namespace berth::internal::memory

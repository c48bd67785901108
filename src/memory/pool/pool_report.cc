// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>
#include <vector>

#include "base/text.h"
#include "memory/device_refusal.h"
#include "memory/holders.h"
#include "memory/pool/pool.h"
#include "memory/pool/pool_walk.h"
#include "memory/pool/search_steps.h"

// What a pool reports: statistics, the out-of-memory report, the audit.
namespace berth::internal::memory {

Stats Pool::stats() const {
  const os::Lock lock(core_.mutex);
  const CacheSet::Shut shut(caches_);
  const Regions::Quiet quiet(regions_);
  return stats_now();
}

Stats Pool::stats_now() const noexcept {
  caches_.take_bytes();
  regions_.take_shares();
  const CacheSet::SentHome sent = caches_.sent_home();
  const PoolUsage& usage = core_.usage;
  const BlockCounts cached = caches_.counts();
  const std::uint64_t allocations = usage.counts().allocations + cached.allocations;
  const std::uint64_t frees = usage.counts().frees + cached.frees + sent.blocks;
  const Space::Figures& figures = core_.space.figures();
  const std::size_t in_use = usage.in_use() - sent.bytes;
  return {.in_use_bytes = in_use,
          .cached_bytes = figures.committed - in_use,
          .committed_bytes = figures.committed,
          .peak_in_use_bytes = std::min(usage.peak(), figures.peak_committed),  // threads count apart from one another
          .peak_committed_bytes = figures.peak_committed,
          .table_bytes = core_.table_bytes(),
          .live_blocks = allocations - frees,
          .allocations = allocations,
          .frees = frees,
          .failures = usage.failures(),
          .commits = figures.commits,
          .decommits = figures.decommits};
}

std::span<const std::byte> Pool::range() const noexcept {
  const os::Lock lock(core_.mutex);
  if (!core_.space.is_open()) return {};
  return {core_.space.base(), core_.space.size_bytes()};
}

std::string Pool::settings() const {
  const Budget& budget = core_.budget;
  const std::string limit = budget.limit() == SIZE_MAX ? "" : text::join(", at most ", text::bytes(budget.limit()));
  const std::chrono::milliseconds decay = core_.decay_period;
  const std::string idle = decay == PoolOptions::kNever ? "kept" : text::join("released after ", text::duration(decay));
  const std::string on = device().to_string();
  const std::string what = is_private() ? text::join("private pool on ", on, ", sharing pages with pool ", supply_.parent()->core().id)
                                        : text::join("pool on ", on);
  const std::string small =
      core_.small_limit == PoolOptions().small_bytes ? "" : text::join(", small blocks up to ", text::bytes(core_.small_limit));
  return text::join(what, limit, small, core_.fixed_pages ? ", fixed pages" : text::join(", idle memory ", idle),
                    core_.background_trim ? " by a thread" : "", core_.wait_for_streams ? "" : ", without waiting for streams");
}

std::vector<Holder> Pool::holders() const {
  HolderTotals totals;
  bool more = true;
  for (std::size_t at = 0; more;) {
    const os::Lock lock(core_.mutex);
    const CacheSet::Shut shut(caches_);
    const Regions::Quiet quiet(regions_);
    more = core_.visit_live(at, [&](BlockRef block, std::size_t bytes) {
      if (block->is_sent_home()) return;
      const Tag tag = block->tag();
      if (!totals.reserve(tag)) throw std::bad_alloc();
      totals.add(tag, bytes);
    });
  }
  return most_first(totals.holders());
}

void Pool::list_blocks(Snapshot& snapshot) const { walk_blocks(core_, book_, regions_, snapshot); }

void Pool::explain(const Failure& failure, OutOfMemoryReport& report) const {
  const os::Lock lock(core_.mutex);
  const CacheSet::Shut shut(caches_);
  const Regions::Quiet quiet(regions_);
  const Stats now = stats_now();
  report.in_use_bytes = now.in_use_bytes;
  report.cached_bytes = now.cached_bytes;
  report.largest_free_run_bytes = core_.space.longest_cached();
  // The tightest of its own limit and its parent's.
  const Budget& own = core_.budget;
  const Budget& parents = is_private() ? supply_.parent()->core().budget : own;
  const bool of_parent = is_private() && parents.limit() - parents.used() < own.limit() - own.used();
  const Budget& tightest = of_parent ? parents : own;
  const std::size_t below_limit = tightest.limit() - std::min(tightest.limit(), tightest.used());
  const bool limited = failure.cause == Refusal::strategy_limit || failure.cause == Refusal::private_limit;
  const bool no_addresses = failure.cause == Refusal::addresses;
  const std::string_view whose = of_parent ? "its parent's" : "the pool's";
  name_device(failure, report);
  if (limited) report.refused_by = text::join(whose, " limit of ", text::bytes(tightest.limit()));
  if (no_addresses)
    report.refused_by = text::join("the pool's ", text::bytes(core_.space.size_bytes()), " of addresses, where no free run is so long");
  if (limited) report.limit_bytes = tightest.limit();
  // Free pages can be moved to be contiguous, so all cached memory counts, but for what is pinned.
  report.pinned_bytes = std::min(core_.space.pinned_bytes(), report.cached_bytes);
  const std::size_t free_bytes = core_.space.cached_bytes() - std::min(core_.space.cached_bytes(), report.pinned_bytes);
  const std::size_t within_reach = std::min(below_limit, report.device_free_bytes) + free_bytes;
  if (no_addresses)
    report.would_be_enough_bytes = report.requested_bytes > core_.space.size_bytes() ? 0 : report.requested_bytes;
  else if (within_reach < report.requested_bytes)
    report.would_be_enough_bytes = report.requested_bytes - within_reach;
  if (last_search().pool == core_.id) report.tried = last_search().to_strings();
  report.tried.emplace_back(text::join("asked the device: ", failure.why));
}

std::string Pool::audit() const {
  const os::Lock lock(core_.mutex);
  if (!core_.is_open()) return {};
  const CacheSet::Shut shut(caches_);
  const Regions::Quiet quiet(regions_);
  if (core_.budget.used() > core_.budget.limit()) return "pool: the limit is exceeded";
  if (std::string wrong = core_.space.audit(); !wrong.empty()) return wrong;
  if (std::string wrong = core_.slabs.audit(); !wrong.empty()) return wrong;
  if (std::string wrong = core_.entries.audit(); !wrong.empty()) return wrong;
  if (std::string wrong = caches_.audit(); !wrong.empty()) return wrong;
  if (std::string wrong = regions_.audit(); !wrong.empty()) return wrong;
  if (std::string wrong = book_.audit(); !wrong.empty()) return wrong;
  // As the owners count: blocks in inboxes are still live, because other threads may keep sending more.
  caches_.take_bytes();
  regions_.take_shares();
  std::size_t bytes = 0;
  std::uint64_t blocks = 0;
  const auto count = [&](BlockRef, std::size_t live) {
    bytes += live;
    ++blocks;
  };
  for (std::size_t at = 0; core_.visit_live(at, count);) {
  }
  if (bytes != core_.usage.in_use()) return "pool: bytes in use are not the sum of the live blocks";
  if (blocks != core_.usage.counts().live() + caches_.counts().live()) return "pool: live blocks are not those the entries say";
  return bytes <= core_.space.figures().committed ? "" : "pool: more is in use than is committed";
}

}  // namespace berth::internal::memory

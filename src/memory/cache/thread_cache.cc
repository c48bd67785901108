// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/thread_cache.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "os/lock/patience.h"

namespace berth::internal::memory {

constinit thread_local CacheFront t_front [[gnu::tls_model("initial-exec")]] = {};

// Between the two stores of a message there is no call: it is complete at once, unless its thread is off the
// processor.
void Inbox::close() noexcept {
  tail_.fetch_or(kClosed, std::memory_order_relaxed);
  for (std::uint64_t at = head_.load(std::memory_order_relaxed); at != tail(); ++at) {
    for (os::Patience patience; entries_[at % kEntries].serial.load(std::memory_order_acquire) == 0;) patience.wait();
  }
}

void Bin::remove_first(std::uint32_t count) noexcept {
  const std::span<const BlockRef> rest = blocks().subspan(count);
  std::copy(rest.begin(), rest.end(), items() + 1);
  top_ -= count;
}

// Blocks that came from the slabs or were freed, and were not handed out, are in the bins; or it was the large
// block that the cache keeps.
std::uint64_t ThreadCache::frees() const noexcept {
  std::int64_t in_bins = 0;
  for (const Bin& bin : bins) in_bins += bin.count();
  return static_cast<std::uint64_t>(in_bins - from_slabs - kept_out) + allocations();
}

namespace {

struct Entry {
  CacheFront front;
  std::weak_ptr<CacheOwner> owner;
};

// The thread's caches are retired: destructors of other thread-local objects may still allocate and free,
// without a cache.
constinit thread_local bool t_ended = false;

struct List {
  std::vector<Entry> entries;

  ~List() {
    t_ended = true;
    t_front = {};
    for (Entry& entry : entries) {
      if (const std::shared_ptr<CacheOwner> owner = entry.owner.lock()) owner->thread_ended(entry.front.cache);
    }
  }
};

thread_local List t_list;

template <class Matches>
ThreadCache* find_if(Matches matches) noexcept {
  if (matches(t_front)) return t_front.cache;
  if (t_ended) return nullptr;
  for (const Entry& entry : t_list.entries) {
    // The cache pointer of a destroyed pool's entry dangles; the pool's id is never reused, so the entry
    // matches nothing.
    if (!matches(entry.front)) continue;
    t_front = entry.front;
    return t_front.cache;
  }
  return nullptr;
}

}  // namespace

ThreadCache* ThreadCaches::find(std::uint64_t allocator, const StreamState* stream) noexcept {
  return find_if(
      [&](const CacheFront& front) { return front.allocator == allocator && front.stream == stream && front.cache->retired.load() == 0; });
}

ThreadCache* ThreadCaches::find_number(std::uint64_t allocator, std::uint32_t number) noexcept {
  return find_if([&](const CacheFront& front) {
    return front.allocator == allocator && front.cache->number == number && front.cache->retired.load() == 0;
  });
}

ThreadCache* ThreadCaches::forget_retired(std::uint64_t allocator) noexcept {
  if (t_ended) return nullptr;
  const auto found = std::ranges::find_if(
      t_list.entries, [&](const Entry& entry) { return entry.front.allocator == allocator && entry.front.cache->retired.load() != 0; });
  if (found == t_list.entries.end()) return nullptr;
  ThreadCache* const cache = found->front.cache;
  if (t_front.cache == cache) t_front = {};
  t_list.entries.erase(found);
  return cache;
}

bool ThreadCaches::reserve() noexcept {
  if (t_ended) return false;
  try {
    std::erase_if(t_list.entries, [](const Entry& entry) { return entry.owner.expired(); });
    t_list.entries.reserve(t_list.entries.size() + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void ThreadCaches::enter(std::weak_ptr<CacheOwner> owner, const CacheFront& front) noexcept {
  t_front = front;
  t_list.entries.push_back({front, std::move(owner)});
}

}  // namespace berth::internal::memory

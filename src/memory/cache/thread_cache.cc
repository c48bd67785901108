// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/thread_cache.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "os/lock/patience.h"
#include "os/process/thread_exit.h"

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

constinit Bin::Shelf Bin::kNoShelf = {};

Bin::~Bin() {
  if (has_shelf()) delete reinterpret_cast<Shelf*>(items());
}

bool Bin::add_shelf() noexcept {
  auto* const shelf = new (std::nothrow) Shelf;
  if (shelf == nullptr) return false;
  top_ = limit_ = shelf->items;
  return true;
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
using List = std::vector<Entry>;

// The thread's caches. A thread-specific value of POSIX ends their use, behind the destructors of thread_local
// objects: it also ends that of a thread which first allocates in the destructor of another such value. From
// then on the thread is served without a cache.
constinit thread_local List* t_list = nullptr;
constinit thread_local bool t_ended = false;

void leave_thread(void* list) noexcept {
  t_ended = true;
  t_front = {};
  t_list = nullptr;
  const std::unique_ptr<List> entries(static_cast<List*>(list));
  for (const Entry& entry : *entries) {
    if (const std::shared_ptr<CacheOwner> owner = entry.owner.lock()) owner->thread_ended(entry.front.cache);
  }
}

os::ThreadExit& thread_exit() noexcept {
  static auto* const made = new os::ThreadExit(leave_thread);
  return *made;
}
[[maybe_unused]] const os::ThreadExit& g_exit_made_at_load = thread_exit();

bool make_list() noexcept {
  auto made = std::unique_ptr<List>(new (std::nothrow) List);
  if (made == nullptr || !thread_exit().arm(made.get())) return false;
  t_list = made.release();
  return true;
}

}  // namespace

ThreadCache* ThreadCaches::find(std::uint64_t allocator, const StreamState* stream) noexcept {
  const auto matches = [&](const CacheFront& front) {
    return front.allocator == allocator && front.stream == stream && front.cache->retired.load() == 0;
  };
  if (matches(t_front)) return t_front.cache;
  if (t_list == nullptr) return nullptr;
  for (const Entry& entry : *t_list) {
    // The cache pointer of a destroyed pool's entry dangles; the pool's id is never reused, so the entry
    // matches nothing.
    if (!matches(entry.front)) continue;
    t_front = entry.front;
    return t_front.cache;
  }
  return nullptr;
}

ThreadCache* ThreadCaches::forget_retired(std::uint64_t allocator) noexcept {
  if (t_list == nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      *t_list, [&](const Entry& entry) { return entry.front.allocator == allocator && entry.front.cache->retired.load() != 0; });
  if (found == t_list->end()) return nullptr;
  ThreadCache* const cache = found->front.cache;
  if (t_front.cache == cache) t_front = {};
  t_list->erase(found);
  return cache;
}

bool ThreadCaches::reserve() noexcept {
  if (t_ended || (t_list == nullptr && !make_list())) return false;
  try {
    std::erase_if(*t_list, [](const Entry& entry) { return entry.owner.expired(); });
    t_list->reserve(t_list->size() + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void ThreadCaches::enter(std::weak_ptr<CacheOwner> owner, const CacheFront& front) noexcept {
  t_front = front;
  t_list->push_back({front, std::move(owner)});
}

}  // namespace berth::internal::memory

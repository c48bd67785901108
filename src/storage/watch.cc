// SPDX-License-Identifier: Apache-2.0
#include "storage/watch.h"

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "berth/base/checked.h"
#include "os/lock/mutex.h"
#include "os/system.h"
#include "storage/buffer_state.h"

namespace berth::internal::storage {

// Stands between a storage and its buffer: copies of the storage hold references to it, and it holds one to the
// buffer.
struct BufferMaker::Holding {
  std::shared_ptr<Buffer::State> state;
  StorageNote note;
  std::weak_ptr<Holding> self;

  Holding(std::shared_ptr<Buffer::State> of, StorageNote what) : state(std::move(of)), note(std::move(what)) {}
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  ~Holding();
};

class BufferMaker::Watch {
 public:
  // Never destroyed: buffers may outlive every static object.
  static Watch& get() {
    static auto* const made = new Watch;
    return *made;
  }

  void begin(std::size_t depth) noexcept {
    {
      const os::Lock lock(mutex_);
      depth_ = std::max(depth_, depth);
    }
    g_storage_watchers.add(1);
  }

  void enter(const std::shared_ptr<Buffer::State>& state, const Site& site, std::uint64_t since_ns) {
    const SiteId id = intern(site);
    const StackId stack = capture_stack(depth());
    const os::Lock lock(mutex_);
    Entry& entry = by_state_[state.get()];
    entry = {.origin = state, .since_ns = since_ns, .order = ++entered_, .site = id, .stack = stack, .holdings = {}};
    state->watched.store(true, std::memory_order_relaxed);
  }

  void forget(const void* state) noexcept {
    const os::Lock lock(mutex_);
    by_state_.erase(state);
  }

  // The buffer itself, without a Holding around it; null when it has no entry.
  std::shared_ptr<Buffer::State> origin(const void* state) {
    const os::Lock lock(mutex_);
    const auto found = by_state_.find(state);
    return found == by_state_.end() ? nullptr : found->second.origin.lock();
  }

  void add(const std::shared_ptr<Holding>& holding) {
    holding->self = holding;
    const os::Lock lock(mutex_);
    const auto found = by_state_.find(holding->state.get());
    if (found != by_state_.end()) found->second.holdings.push_back(holding.get());
  }

  void remove(const Holding& holding) noexcept {
    const os::Lock lock(mutex_);
    const auto found = by_state_.find(holding.state.get());
    if (found != by_state_.end()) std::erase(found->second.holdings, &holding);
  }

  long count(const void* state) noexcept {
    const os::Lock lock(mutex_);
    const auto found = by_state_.find(state);
    return found == by_state_.end() ? 0 : count_of(found->second);
  }

  std::vector<BufferNote> notes() {
    struct Found {
      std::uint64_t order;
      BufferNote note;
      std::shared_ptr<Buffer::State> state;  // may be the last handle: released outside the lock
    };
    std::vector<Found> found;
    {
      const os::Lock lock(mutex_);
      found.reserve(by_state_.size());
      for (const auto& [address, entry] : by_state_) {
        if (auto state = entry.origin.lock()) found.push_back({entry.order, note_of(entry, *state), std::move(state)});
      }
    }
    std::ranges::sort(found, {}, &Found::order);
    std::vector<BufferNote> notes;
    notes.reserve(found.size());
    for (Found& one : found) {
      // Not under the lock: a third party's name() may do anything.
      if (one.state->allocator != nullptr) one.note.allocator = one.state->allocator->name();
      notes.push_back(std::move(one.note));
    }
    return notes;
  }

  std::size_t depth() noexcept {
    const os::Lock lock(mutex_);
    return depth_;
  }

 private:
  struct Entry {
    std::weak_ptr<Buffer::State> origin;
    std::uint64_t since_ns = 0;
    std::uint64_t order = 0;
    SiteId site;
    StackId stack;
    std::vector<Holding*> holdings;
  };

  // Handles of the buffer itself, and of storages over it, which refer to it through a Holding.
  static long count_of(const Entry& entry) noexcept {
    long count = entry.origin.use_count() - static_cast<long>(entry.holdings.size());
    for (const Holding* const holding : entry.holdings) count += holding->self.use_count();
    return count;
  }

  static BufferNote note_of(const Entry& entry, const Buffer::State& state) {
    BufferNote note{.block = state.block,
                    .owner = state.owner,
                    .allocator = {},
                    .since_ns = entry.since_ns,
                    .site = entry.site,
                    .stack = entry.stack,
                    // Without this function's own handle.
                    .handles = entry.origin.use_count() - 1 - static_cast<long>(entry.holdings.size()),
                    .pins = state.pins.load(std::memory_order_relaxed),
                    .storages = {}};
    for (const Holding* const holding : entry.holdings) {
      const long handles = holding->self.use_count();
      if (handles == 0) continue;  // it is being destroyed
      note.storages.push_back(holding->note);
      note.storages.back().handles = handles;
    }
    return note;
  }

  os::Mutex mutex_;
  std::map<const void*, Entry> by_state_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t entered_ BERTH_GUARDED_BY(mutex_) = 0;
  std::size_t depth_ BERTH_GUARDED_BY(mutex_) = 0;
};

BufferMaker::Holding::~Holding() { Watch::get().remove(*this); }

void BufferMaker::enter(const Buffer& buffer, const Site& site) noexcept {
  try {
    Watch::get().enter(buffer.state_, site, os::steady_time_ns());
  } catch (const std::bad_alloc&) {  // it works without being watched
  }
}

void BufferMaker::forget(const void* state) noexcept { Watch::get().forget(state); }
long BufferMaker::count_handles(const Buffer& buffer) noexcept { return Watch::get().count(buffer.state_.get()); }
std::vector<BufferNote> BufferMaker::all_noted() { return Watch::get().notes(); }

Buffer BufferMaker::noted(Buffer buffer, DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset) {
  if (!buffer) return buffer;
  try {
    Watch& watch = Watch::get();
    // A buffer older than the watching gets its entry here: it has no notes yet, and its handle is the origin.
    if (!buffer.state_->watched.load(std::memory_order_relaxed)) watch.enter(buffer.state_, {}, 0);
    const std::shared_ptr<Buffer::State> origin = watch.origin(buffer.state_.get());
    const bool whole = offset == 0 && is_contiguous(shape, strides) && shape.size_bytes(dtype) == buffer.size_bytes();
    const auto holding =
        std::make_shared<Holding>(origin == nullptr ? buffer.state_ : origin,
                                  StorageNote{dtype, shape, strides, whole, os::steady_time_ns(), capture_stack(watch.depth()), 0});
    watch.add(holding);
    Buffer made = buffer;
    made.state_ = std::shared_ptr<Buffer::State>(holding, buffer.state_.get());
    return made;
  } catch (const std::bad_alloc&) {  // it works without a note
    return buffer;
  }
}

void begin_watching_storages(std::size_t stack_depth) noexcept { BufferMaker::Watch::get().begin(stack_depth); }
void end_watching_storages() noexcept { g_storage_watchers.add(-1); }
std::vector<BufferNote> watched_buffers() { return BufferMaker::all_noted(); }

}  // namespace berth::internal::storage

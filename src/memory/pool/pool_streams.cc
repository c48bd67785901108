// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "berth/device/backend.h"
#include "device/stream_clock.h"
#include "memory/pool/pool.h"

// The pool and the streams that may still be at work on what was freed.
namespace berth::internal::memory {

namespace {

constexpr Failure kNoHeap{ErrorCode::out_of_memory, 0, "no heap to remember the stream"};

}  // namespace

// Takes in what can be known without asking: how far others have seen the streams get, and, for the stream of a request, the waits it was
// given. True when there may be more to be had.
bool Pool::take_known(std::uint32_t stream) noexcept {
  bool news = false;
  for (std::uint32_t i = 1; i < streams_.count(); ++i) {
    if (!streams_[i].is_pending() || !streams_.look(i)) continue;
    space_.clean(i, streams_[i].done);
    news = true;
  }
  if (news) (void)release_extra(0, nullptr);
  return take_ordered(stream) || news;
}

// What was freed on streams that this one is known to come after is its own from now on, as if freed on it now.
bool Pool::take_ordered(std::uint32_t stream) noexcept {
  StreamState* const state = streams_[stream].stream.get();  // the request's: it stays
  if (state == nullptr || state->clock_version() == streams_[stream].clock_version) return false;
  const std::uint64_t version = state->clock_version();
  const std::shared_ptr<const device::StreamClock> clock = os::unlocked(mutex_, [&] { return state->clock(); });
  if (clock == nullptr || streams_[stream].stream.get() != state) return false;
  streams_[stream].clock_version = version;
  bool news = false;
  for (std::uint32_t other = 1; other < streams_.count(); ++other) {
    const std::uint64_t point = other == stream || streams_[other].id == 0 ? 0 : clock->point_of(streams_[other].id);
    if (point != 0 && space_.pass_on(other, point, stream, next_point())) news = true;
  }
  if (news) (void)streams_.point_of_free(stream);
  return release_extra(stream, clock.get()) || news;
}

// Asks how far the streams are that freed memory waits for, or waits for them; what they are done with becomes everyone's.
void Pool::settle_streams(bool wait) noexcept {
  ask_streams(wait);
  if (release_extra(0, nullptr)) ask_streams(wait);  // about the streams of their own
}

void Pool::ask_streams(bool wait) noexcept {
  for (std::uint32_t i = 1; i < streams_.count(); ++i) {
    if (streams_.look(i)) space_.clean(i, streams_[i].done);
    if (!streams_[i].is_pending()) continue;
    StreamUses::Question question = streams_.question(i);
    os::unlocked(mutex_, [&] { StreamUses::ask(question, wait); });
    if (streams_.enter(i, question)) space_.clean(i, streams_[i].done);
    os::unlocked(mutex_, [&] { question = {}; });
  }
}

// Memory for a stream that is being captured into a graph: what is freed there is used again each time the graph runs, long after its
// stream's events say that it is over. Only a pool that keeps its pages where they are, for that graph alone, can give it. Lets go of the lock.
Status Pool::check_capture(std::uint32_t stream) noexcept {
  if (fixed_pages_ || stream == 0) return {};
  const std::shared_ptr<StreamState> state = streams_[stream].stream;
  if (state == nullptr) return {};
  const bool captured = os::unlocked(mutex_, [&] { return state->is_capturing(); });
  if (!captured) return {};
  return Failure{ErrorCode::unsupported, 0,
                 "the stream is being captured into a graph, and this pool would give its memory to others while the graph still uses it "
                 "(allocate from a private_pool with fixed_pages, made for the graph)"};
}

// ---- blocks that several streams use

Result<BlockVerdict> Pool::note_use(const Block& given, StreamRef stream) noexcept {
  Block block = given;
  BlockEntry* const entry = find_entry(block);
  if (entry == nullptr) return BlockVerdict::foreign;
  const os::Lock lock(mutex_);
  std::uint32_t number = 0;
  const Status able = is_inherited() ? Status() : ready(stream, number);
  if (!able) return able.failure();
  const bool large = entry->is_large();
  if (large) {
    recall(entry);
    if (const BlockVerdict verdict = judge_large(entry, block); verdict != BlockVerdict::ok) return verdict;
    if (number == 0 || number == stream_of(entry)) return BlockVerdict::ok;
    return extra_.add(entries_.number(entry), stream.id()) ? Result<BlockVerdict>(BlockVerdict::ok) : kNoHeap;
  }
  // A small block is its owner's: with the lock, and on its thread, nobody else can change it.
  const std::uint32_t owner = entry->owner();
  std::optional<AllShut> shut;
  // (Not by way of find_number in a child that must leave the pool alone: a cache that is found serves the next request.)
  if (owner != 0 && (is_inherited() || ThreadCaches::find_number(id(), owner) == nullptr)) shut.emplace(*this);
  if (const BlockVerdict verdict = judge(entry, block); verdict != BlockVerdict::ok) return verdict;
  if (number == 0 || number == stream_of(entry)) return BlockVerdict::ok;
  if (!extra_.add(entries_.number(entry), stream.id())) return kNoHeap;
  entry->kind.store(entry->kind.load() | BlockEntry::kExtraUses);
  return BlockVerdict::ok;
}

// The stream that a block goes back to.
std::uint32_t Pool::stream_of(const BlockEntry* entry) const noexcept {
  return entry->is_large() ? space_.extent(entry->extent())->stream : slabs_.stream_at(entry->offset());
}

// BlockVerdict blocks that no stream beside their own can be at work on go where freed blocks go; so do those of a stream that is known, by its
// clock, to come after the work of the others. False when there was none.
bool Pool::release_extra(std::uint32_t stream, const device::StreamClock* clock) noexcept {
  bool any = false;
  ExtraUses::Key at = 0;
  const auto is_over = [&](ExtraUses::Key key, const ExtraUses::Use& use) BERTH_NO_THREAD_ANALYSIS {
    if (ExtraUses::is_over(use, streams_)) return true;
    return clock != nullptr && clock->point_of(use.stream_id) >= use.point &&
           stream_of(&entries_[static_cast<std::uint32_t>(key)]) == stream;
  };
  while (extra_.take_over(at, is_over)) {
    release(&entries_[static_cast<std::uint32_t>(at)]);
    any = true;
  }
  return any;
}

// REQUIRES: the entry's block is freed, and in no cache.
void Pool::release(BlockEntry* entry) noexcept {
  if (!entry->is_large()) {
    slabs_.give(entry);
    return;
  }
  PoolExtent* const extent = space_.extent(entry->extent());
  slabs_.leave_large(extent->begin);
  entries_.give_back(BlockTable::kLarge, entries_.number(entry));
  const std::uint32_t stream = streams_.heir(extent->stream);
  space_.give(extent, stream, streams_.point_of_free(stream));
}

namespace {

// Whether all work of a stream that nobody else has is done, by an event recorded behind it.
bool is_over(StreamState& stream, bool& has_last, Event& last) noexcept {
  try {
    if (stream.is_capturing()) return false;  // its events prove nothing
    if (!has_last) last = stream.record();
    has_last = true;
    return last.query();
  } catch (...) {  // a stream that cannot be asked proves nothing; a third party's may throw anything
    return false;
  }
}

}  // namespace

// Frees the numbers of streams that nobody else has any more and whose work is done.
void Pool::retire_streams() noexcept {
  for (std::uint32_t i = 1; i < streams_.count(); ++i) {
    if (!streams_[i].is_ours_alone()) continue;
    std::shared_ptr<StreamState> stream = streams_[i].stream;
    bool has_last = streams_[i].has_last;
    Event last = streams_[i].last;
    const bool done = os::unlocked(mutex_, [&] { return is_over(*stream, has_last, last); });
    StreamUses::Use gone;
    if (streams_[i].stream == stream) {
      streams_[i].has_last = has_last;
      std::swap(streams_[i].last, last);
      if (done) {
        retire_caches(i);
        space_.end_stream(i);
        gone = streams_.remove(i);
      }
    }
    os::unlocked(mutex_, [&] {  // the last handles of a stream may run anything
      gone = {};
      last = {};
      stream = nullptr;
    });
  }
  (void)release_extra(0, nullptr);
}

// What is in the caches of a stream goes back to the slabs, and no thread finds them any more: their gates stay shut.
void Pool::retire_caches(std::uint32_t stream) noexcept {
  const AllShut shut(*this);
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS {
    if (cache.stream != stream) return;
    count_bytes(cache);
    flush(cache);
    cache.retired.store(1);
  });
}

// Gives the range back when no stream can be at work on it any more. Nobody waits: the last handle of a pool may go inside a stream's own
// work. Where the streams cannot be asked for that, the range stays.
void Pool::close_in_turn() noexcept {
  constexpr int kTries = 1000;  // a device may be slow to say that it is done
  for (int i = 0; i < kTries && streams_.any_pending(); ++i) settle_streams(false);
  if (!streams_.any_pending()) {
    if (is_private()) space_.trim(0);  // its pages go to its parent
    space_.close();
    return;
  }
  space_.make_touchable();
  const os::Unlock unlocked(mutex_);  // streams have locks of their own. Nobody else is here any more
  // By then this pool is gone. What its own budget stands on is not: the process's is never destroyed, and a parent is kept.
  (void)streams_.enqueue_behind_pending([&behind = backend(), parent = parent_, below = budget_.below(), base = space_.base(),
                                         bytes = space_.size_bytes(), committed = space_.figures().committed] {
    (void)behind.release(base, bytes).ok();
    below->give_up(committed);
  });
}

}  // namespace berth::internal::memory

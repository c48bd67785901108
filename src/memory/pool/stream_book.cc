// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/stream_book.h"

#include <utility>

namespace berth::internal::memory {

namespace {

// Whether all work is done of a stream that has no other handle, by an event recorded behind it.
bool is_over(StreamState& stream, bool& has_last, Event& last) noexcept {
  try {
    if (stream.is_capturing()) return false;  // its events prove nothing
    if (!has_last) last = stream.record();
    has_last = true;
    return last.query();
  } catch (...) {  // a stream that cannot be queried proves nothing; a third party's may throw anything
    return false;
  }
}

}  // namespace

std::uint32_t StreamBook::stream_of(BlockRef block) const noexcept {
  return block.is_large() ? core_.extent_of(block)->stream : core_.slabs.stream_of(block);
}

Status StreamBook::note_use(BlockRef block, StreamRef stream, std::uint32_t number) noexcept {
  if (number == 0 || number == stream_of(block)) return {};
  if (!extra_.add(block.cookie(), stream.id())) return kNoHeap;
  if (block.is_large()) return {};
  // If another thread sends it home meanwhile, then that is what it is.
  const std::uint64_t state = block->state.load();
  (void)block->state.replace(state, state | BlockEntry::kExtraUses);
  return {};
}

void StreamBook::release(BlockRef block) noexcept {
  PoolExtent* extent = nullptr;
  if (block.is_large()) {
    extent = core_.extent_of(block);
    core_.blocks.set(extent->begin, 1, {});
    core_.entries.give_back(block);
  } else {
    extent = core_.slabs.give(block);
  }
  if (extent != nullptr) release(extent);
}

void StreamBook::release(PoolExtent* extent) noexcept {
  const std::uint32_t stream = uses_.heir(extent->stream);
  core_.space.give(extent, stream, uses_.point_of_free(stream));
}

bool StreamBook::take_known(std::uint32_t stream) noexcept {
  bool news = false;
  for (std::uint32_t i = 1; i < uses_.count(); ++i) {
    if (!uses_[i].is_pending() || !uses_.look(i)) continue;
    core_.space.clean(i, uses_[i].done);
    news = true;
  }
  if (news) (void)release_extra(0, nullptr);
  return take_ordered(stream) || news;
}

// Memory that was freed on streams that this one is ordered behind becomes its own, as if freed on it now.
bool StreamBook::take_ordered(std::uint32_t stream) noexcept {
  StreamState* const state = uses_[stream].stream.get();  // the request's: it stays alive
  if (state == nullptr || state->clock_version() == uses_[stream].clock_version) return false;
  const std::uint64_t version = state->clock_version();
  const std::shared_ptr<const device::StreamClock> clock = os::unlocked(core_.mutex, [&] { return state->clock(); });
  if (clock == nullptr || uses_[stream].stream.get() != state) return false;
  uses_[stream].clock_version = version;
  bool news = false;
  for (std::uint32_t other = 1; other < uses_.count(); ++other) {
    const std::uint64_t point = other == stream || uses_[other].id == 0 ? 0 : clock->point_of(uses_[other].id);
    if (point != 0 && core_.space.pass_on(other, point, stream, next_point())) news = true;
  }
  if (news) (void)uses_.point_of_free(stream);
  return release_extra(stream, clock.get()) || news;
}

void StreamBook::settle(Wait wait) noexcept {
  query_streams(wait);
  if (release_extra(0, nullptr)) query_streams(wait);  // about the streams that these blocks were freed on
}

// Enters an answer. True when more frees are over.
bool StreamBook::learn(std::uint32_t number, StreamUses::Question& question) noexcept {
  if (!uses_.enter(number, question)) return false;
  core_.space.clean(number, uses_[number].done);
  return true;
}

// Mark by mark, until one is not done, or all frees so far are over: other threads may go on freeing.
void StreamBook::query_streams(Wait wait) noexcept {
  for (std::uint32_t i = 1; i < uses_.count(); ++i) {
    if (uses_.look(i)) core_.space.clean(i, uses_[i].done);
    const std::uint64_t last = uses_[i].point;
    for (bool more = true; more && uses_[i].is_pending() && uses_[i].done < last;) {
      StreamUses::Question question = uses_.question(i);
      os::unlocked(core_.mutex, [&] { StreamUses::ask(question, wait == Wait::yes); });
      (void)learn(i, question);
      more = question.done;
      os::unlocked(core_.mutex, [&] { question = {}; });
    }
  }
}

bool StreamBook::wait_for(std::uint32_t stream, std::uint64_t point) noexcept {
  StreamUses::Question question = uses_.question(stream, point);
  if (question.stream == nullptr) return false;
  os::unlocked(core_.mutex, [&] { StreamUses::ask(question, true); });
  const bool done = question.done;
  (void)learn(stream, question);
  os::unlocked(core_.mutex, [&] { question = {}; });
  (void)release_extra(0, nullptr);
  return done;
}

bool StreamBook::wait_for_oldest() noexcept {
  for (bool more = true; more;) {
    const std::uint32_t oldest = uses_.oldest_pending();
    if (oldest == 0) return false;
    StreamUses::Question question = uses_.question(oldest);
    os::unlocked(core_.mutex, [&] { StreamUses::ask(question, true); });
    const bool news = learn(oldest, question);
    more = question.done;  // else it was known to be over, and the next mark may not be
    os::unlocked(core_.mutex, [&] { question = {}; });
    if (!news) continue;
    (void)release_extra(0, nullptr);
    return true;
  }
  return false;
}

void StreamBook::mark_frees() noexcept {
  if (!has_several_streams() && !core_.space.cuts_matter()) return;  // the memory of one stream is its own
  for (std::uint32_t i = 1; i < uses_.count(); ++i) {
    if (!uses_[i].is_pending() || uses_[i].is_marked()) continue;
    StreamUses::Question mark = uses_.new_mark(i);
    os::unlocked(core_.mutex, [&] { StreamUses::record(mark); });
    (void)uses_.enter(i, mark);
    os::unlocked(core_.mutex, [&] { mark = {}; });
  }
}

Status StreamBook::refuse_capture(std::uint32_t stream) noexcept {
  if (core_.fixed_pages || stream == 0) return {};
  const std::shared_ptr<StreamState> state = uses_[stream].stream;
  if (state == nullptr) return {};
  const bool captured = os::unlocked(core_.mutex, [&] { return state->is_capturing(); });
  if (!captured) return {};
  return Failure{ErrorCode::unsupported, 0,
                 "the stream is being captured into a graph, and this pool would reuse the memory while the graph still uses it "
                 "(allocate from a private_pool with fixed_pages, made for the graph)"};
}

bool StreamBook::release_extra(std::uint32_t stream, const device::StreamClock* clock) noexcept {
  bool any = false;
  ExtraUses::Key at = 0;
  const auto is_over = [&](ExtraUses::Key key, const ExtraUses::Use& use) {
    if (ExtraUses::is_over(use, uses_)) return true;
    return clock != nullptr && clock->point_of(use.stream_id) >= use.point && stream_of(BlockRef(key)) == stream;
  };
  while (extra_.take_over(at, is_over)) {
    release(BlockRef(at));
    any = true;
  }
  return any;
}

void StreamBook::retire_if_over(std::uint32_t number, const std::function<void(std::uint32_t)>& retiring) noexcept {
  std::shared_ptr<StreamState> stream = uses_[number].stream;
  bool has_last = uses_[number].has_last;
  Event last = uses_[number].last;
  const bool done = os::unlocked(core_.mutex, [&] { return is_over(*stream, has_last, last); });
  StreamUses::Use gone;
  if (uses_[number].stream == stream) {
    uses_[number].has_last = has_last;
    std::swap(uses_[number].last, last);
    if (done) {
      retiring(number);
      core_.space.end_stream(number);
      gone = uses_.remove(number);
    }
  }
  os::unlocked(core_.mutex, [&] {  // destroying the last handle of a stream may run any code
    gone = {};
    last = {};
    stream = nullptr;
  });
}

std::string StreamBook::audit() const {
  bool all_freed = true;
  for_each_waiting([&](BlockRef block) { all_freed = all_freed && !block->is_live(); });
  return all_freed ? "" : "pool: a block that waits for streams is live";
}

}  // namespace berth::internal::memory

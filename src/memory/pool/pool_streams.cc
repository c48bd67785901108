// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "memory/pool/pool.h"

// The pool and the streams that may still be at work on what was freed.
namespace berth {

// Asks how far the streams are that freed memory waits for, or waits for them; what they are done with becomes everyone's.
void Pool::settle_streams(bool wait) noexcept {
  for (std::uint32_t i = 1; i < streams_.count(); ++i) {
    if (!streams_[i].is_pending()) continue;
    StreamUses::Question question = streams_.question(i);
    mutex_.unlock();
    StreamUses::ask(question, wait);
    mutex_.lock();
    if (streams_.enter(i, question)) space_.clean(i, question.ticket);
    mutex_.unlock();
    question = {};
    mutex_.lock();
  }
}

// Frees the numbers of streams that nobody else has any more and whose work is done.
void Pool::retire_streams() noexcept {
  for (std::uint32_t i = 1; i < streams_.count(); ++i) {
    if (!streams_[i].is_ours_alone()) continue;
    std::shared_ptr<StreamState> stream = streams_[i].stream;
    bool has_last = streams_[i].has_last;
    Event last = streams_[i].last;
    mutex_.unlock();
    bool done = false;
    try {
      if (!has_last) last = stream->record();
      has_last = true;
      done = last.query();
    } catch (...) {  // a stream that cannot be asked proves nothing; a third party's may throw anything
    }
    mutex_.lock();
    StreamUses::Use gone;
    if (streams_[i].stream == stream) {
      streams_[i].has_last = has_last;
      std::swap(streams_[i].last, last);
      if (done) {
        retire_caches(i);
        space_.clean(i, streams_[i].ticket);
        gone = streams_.remove(i);
      }
    }
    mutex_.unlock();
    gone = {};
    last = {};
    stream = nullptr;
    mutex_.lock();
  }
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
  std::shared_ptr<StreamState> last;
  try {
    for (std::uint32_t i = 1; i < streams_.count(); ++i) {
      if (!streams_[i].is_pending()) continue;
      if (last != nullptr)
        last->wait(streams_[i].stream->record());
      else
        last = streams_[i].stream;
    }
    last->enqueue([&behind = backend(), base = space_.base(), bytes = space_.size_bytes()] { (void)behind.release(base, bytes).ok(); });
    budget_.give_up(space_.figures().committed);
  } catch (...) {  // a third party's stream may throw anything
  }
}

}  // namespace berth

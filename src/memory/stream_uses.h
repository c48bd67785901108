// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "berth/device/stream.h"

// The streams that blocks of an allocator were freed on, numbered from 1, and how far each is known to have
// progressed. A free on a stream has a point: the number that the next event will have. So an event of the
// stream with that point or a later one is done only when the work before the free is, and a stream whose clock
// has reached that point is ordered after that work.
//
// A stream is kept alive while it has a number, because work on freed memory may be pending in it. When there
// is no other reference to it, and its work is done, the number can be given to another stream: no work can
// touch memory of the old one, freed or not. Number 0 is "no stream". Not thread-safe: its owner locks.
namespace berth::internal::memory {

class StreamUses {
 public:
  static constexpr std::size_t kMostMarks = 1024;

  struct Use {
    std::uint64_t id = 0;
    std::shared_ptr<StreamState> stream;
    std::uint64_t point = 0;          // of the last free
    std::uint64_t done = 0;           // frees up to this one are over
    std::list<Event> marks = {};      // recorded behind frees, and not yet seen to be done; by point
    std::uint64_t clock_version = 0;  // of the stream's clock, when it was last read
    bool has_last = false;            // `last` is recorded, with no other reference left: the final event
    Event last = {};

    bool is_pending() const noexcept { return point > done && stream != nullptr; }
    // Whether its frees need no other mark; those behind kMostMarks wait for a later one.
    bool is_marked() const noexcept { return marks.size() >= kMostMarks || (!marks.empty() && marks.back().point() >= point); }
    bool is_ours_alone() const noexcept { return stream.use_count() == 1; }
  };

  // The number of a stream; 0 when it has none (or for no stream).
  std::uint32_t find(StreamRef stream) const noexcept { return stream ? find(stream.id()) : 0; }
  std::uint32_t find(std::uint64_t id) const noexcept { return id == last_id_ ? last_number_ : look_up(id); }
  // Assigns a number; returns 0 when the heap is exhausted. REQUIRES: the stream has none.
  std::uint32_t add(StreamRef stream) noexcept;
  std::uint32_t find_or_add(StreamRef stream) noexcept {
    const std::uint32_t number = find(stream);
    return number != 0 || !stream ? number : add(stream);
  }
  // The progress of a stream is queried in three steps, the second without a lock: prepare the question, about the
  // oldest mark, or one that is recorded now; ask it (or wait); and enter the answer. The caller drops the question
  // without a lock too: its handles may be the last, and their destructors may run arbitrary code.
  struct Question {
    std::shared_ptr<StreamState> stream;
    Event event = {};  // without a point: not recorded yet
    bool done = false;
  };
  Question question(std::uint32_t number) const noexcept { return question(number, 0); }
  // The same about the oldest mark that proves a free.
  Question question(std::uint32_t number, std::uint64_t point) const noexcept;
  // The same for a mark alone: an event behind the frees so far, which later work of the stream does not delay.
  Question new_mark(std::uint32_t number) const noexcept { return {.stream = uses_[number].stream}; }
  static void record(Question& question) noexcept;
  // Never waits inside a stream's host function: the work that it would wait for may wait for that function.
  static void ask(Question& question, bool wait) noexcept;
  // Returns true when more frees are known to be over. Nothing is entered when another stream has the number by
  // now.
  bool enter(std::uint32_t number, Question& question) noexcept;
  // Enters the progress that others have observed, without querying the stream. Returns the same as `enter`.
  bool look(std::uint32_t number) noexcept;

  // Releases the number, and returns what was known, which the caller drops without a lock. REQUIRES: all the
  // stream's work is done.
  Use remove(std::uint32_t number) noexcept;

  std::size_t streams() const noexcept { return by_id_.size(); }
  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(uses_.size()); }
  Use& operator[](std::uint32_t number) noexcept { return uses_[number]; }
  const Use& operator[](std::uint32_t number) const noexcept { return uses_[number]; }

  std::uint64_t point_of_free(std::uint32_t number) noexcept { return number == 0 ? 0 : uses_[number].point = next_point(); }
  // The stream that gets memory freed on this one: the stream itself, or any (0) when it no longer exists, as
  // no work can touch the memory then.
  std::uint32_t heir(std::uint32_t number) const noexcept { return uses_[number].stream == nullptr ? 0 : number; }
  bool any_pending() const noexcept;
  // Of the streams that frees wait for, the one whose next mark is the oldest; 0: there is none.
  std::uint32_t oldest_pending() const noexcept;
  // How many waits learn of all frees so far.
  std::size_t most_waits() const noexcept;
  // Enqueues work that runs after everything that may still touch freed memory. Returns false when a stream
  // rejects it, or there is no pending work.
  bool enqueue_behind_pending(std::function<void()> work) noexcept;

 private:
  void keep_mark(Use& use, Event& event) noexcept;
  std::uint32_t look_up(std::uint64_t id) const noexcept;

  mutable std::uint64_t last_id_ = 0;  // a cache of the last look-up: id and number; 0: none
  mutable std::uint32_t last_number_ = 0;
  std::vector<Use> uses_{1};
  std::unordered_map<std::uint64_t, std::uint32_t> by_id_;
  std::vector<std::uint32_t> free_;  // released numbers; capacity for all
};

}  // namespace berth::internal::memory

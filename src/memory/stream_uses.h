// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "berth/device/stream.h"

// The streams that blocks of an allocator were freed on, by small numbers, and how far each is known to have got. A free on a stream has a
// point: the number that the next event will have. So an event of the stream with that point or a later one is done only when
// the work before the free is, and a stream whose clock has reached it there comes after that work.
//
// A stream is kept alive while it has a number, because work on freed memory may be in it. When nobody else has it any more, and its work
// is done, the number is free for another: what was the old stream's, freed or not, no work can touch.
// Number 0 is "no stream". Not thread-safe: its owner locks.
namespace berth::internal::memory {

class StreamUses {
 public:
  struct Use {
    std::uint64_t id = 0;
    std::shared_ptr<StreamState> stream;
    std::uint64_t point = 0;          // of the last free
    std::uint64_t done = 0;           // frees up to this one are over
    Event event = {};                 // asked for
    bool is_asked = false;            // and not yet seen to be done
    std::uint64_t clock_version = 0;  // of the stream's clock, when it was last looked at
    bool has_last = false;            // nobody else had the stream any more when this was recorded: nothing can come after it
    Event last = {};

    bool is_pending() const noexcept { return point > done && stream != nullptr; }
    bool is_ours_alone() const noexcept { return stream.use_count() == 1; }
  };

  // The number of a stream; 0 when it has none (or for no stream).
  std::uint32_t find(StreamRef stream) const noexcept { return stream ? find(stream.id()) : 0; }
  std::uint32_t find(std::uint64_t id) const noexcept { return id == last_id_ ? last_number_ : look_up(id); }
  // Gives it one; 0 when there is no heap. REQUIRES: it has none.
  std::uint32_t add(StreamRef stream) noexcept;
  std::uint32_t find_or_add(StreamRef stream) noexcept {
    const std::uint32_t number = find(stream);
    return number != 0 || !stream ? number : add(stream);
  }
  // How far a stream is, asked in three steps, the second without a lock: what to ask, asking (or waiting), and entering the answer. The
  // question is the caller's to let go of, without a lock too: its handles may be the last, and that may run anything.
  struct Question {
    std::shared_ptr<StreamState> stream;
    Event event = {};  // without a point: it has to be recorded first
    bool done = false;
  };
  Question question(std::uint32_t number) const noexcept;
  // Never waits inside a stream's host function: what is waited for may be waiting for that.
  static void ask(Question& question, bool wait) noexcept;
  // True when more frees are known to be over than before. Nothing is entered when another stream has the number by now.
  bool enter(std::uint32_t number, Question& question) noexcept;
  // Enters what others have seen of the stream, without asking it. As `enter`.
  bool look(std::uint32_t number) noexcept;

  // Takes the number away, and returns what was known, to be let go of without a lock. REQUIRES: all the stream's work is done.
  Use remove(std::uint32_t number) noexcept;

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(uses_.size()); }
  Use& operator[](std::uint32_t number) noexcept { return uses_[number]; }
  const Use& operator[](std::uint32_t number) const noexcept { return uses_[number]; }

  std::uint64_t point_of_free(std::uint32_t number) noexcept { return number == 0 ? 0 : uses_[number].point = next_point(); }
  // Whose memory is that is freed on a stream: its own, or everyone's (0) when it is gone, as no work can touch it then.
  std::uint32_t heir(std::uint32_t number) const noexcept { return uses_[number].stream == nullptr ? 0 : number; }
  bool any_pending() const noexcept;
  // Puts work behind everything that may still touch freed memory. False when a stream would not take it, or there is nothing to be behind.
  bool enqueue_behind_pending(std::function<void()> work) noexcept;

 private:
  std::uint32_t look_up(std::uint64_t id) const noexcept;

  mutable std::uint64_t last_id_ = 0;  // the stream that was asked for last has a number, which is this; 0: none
  mutable std::uint32_t last_number_ = 0;
  std::vector<Use> uses_{1};
  std::unordered_map<std::uint64_t, std::uint32_t> by_id_;
  std::vector<std::uint32_t> free_;  // numbers that were taken away; capacity for all
};

}  // namespace berth::internal::memory

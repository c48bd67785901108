// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What the work of a thread may take, in time and in memory, while input of any size and origin is read, planned
// and verified. It belongs to the thread and not to each signature: a limit must hold in every loop of the
// readers, of the validator and of the verifier, which otherwise know nothing of it.
//
//     base::Allowance allowance({.until = now + 2s, .room_bytes = 256_MiB});
//     read(bytes);   // calls checkpoint() and take(); throws OutOfTime or OutOfRoom
//
// Without an allowance around it, work may take what it likes. An allowance inside another replaces it.
namespace berth::internal::base {

struct OutOfTime {};
struct OutOfRoom {};

class Allowance {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    std::optional<Clock::time_point> until = {};
    std::size_t room_bytes = SIZE_MAX;
  };

  explicit Allowance(const Limits& limits) : until_(limits.until), room_(limits.room_bytes), around_(std::exchange(current(), this)) {}
  ~Allowance() { current() = around_; }
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  // Of this thread; null: none.
  static Allowance*& current() noexcept {
    static thread_local Allowance* allowance = nullptr;
    return allowance;
  }

  // Cheap enough for every turn of a loop: it looks at the clock once in many calls.
  void check() {
    if (until_ && ++calls_ % kCallsPerLook == 0) look();
  }
  void look() {
    if (until_ && Clock::now() >= *until_) throw OutOfTime();
  }

  bool is_short_for(Clock::duration work) const { return until_ && Clock::now() + work >= *until_; }

  // The share of the whole work that is done, from 0 to 1; from it follows how long the whole takes.
  void reached(double share) {
    const Clock::time_point now = Clock::now();
    if (done_ == 0) {
      first_ = share;
      first_at_ = now;
    }
    done_ = share;
    done_at_ = now;
  }
  std::chrono::duration<double> whole() const {
    if (done_ <= 0) return Clock::now() - start_;
    // What comes before the first share, such as reserving memory, says nothing of the pace once there are two.
    if (done_ == first_) return std::chrono::duration<double>(done_at_ - start_) / done_;
    return (first_at_ - start_) + std::chrono::duration<double>(done_at_ - first_at_) / (done_ - first_);
  }

  // Whether, at the pace so far, the whole takes much longer than there is. Says no while little is done.
  bool is_hopeless() const {
    constexpr double kEnough = 0.04;
    return until_ && done_ - first_ > kEnough && 0.5 * whole() > *until_ - start_;
  }

  void take(std::size_t bytes) {
    if (bytes > room_) throw OutOfRoom();
    room_ -= bytes;
  }
  void give(std::size_t bytes) noexcept { room_ += bytes; }

 private:
  static constexpr unsigned kCallsPerLook = 256;

  const Clock::time_point start_ = Clock::now();
  const std::optional<Clock::time_point> until_;
  std::size_t room_;
  Allowance* const around_;
  unsigned calls_ = 0;
  double first_ = 0;  // the first share that was reached, and the last, with their times
  double done_ = 0;
  Clock::time_point first_at_ = start_;
  Clock::time_point done_at_ = start_;
};

// Throws OutOfTime when the thread's time is over.
inline void checkpoint() {
  if (Allowance* const allowance = Allowance::current()) allowance->check();
}

// Before a step that has no checkpoints inside, such as a sort of everything.
inline void checkpoint_now() {
  if (Allowance* const allowance = Allowance::current()) allowance->look();
}

inline void reached(double share) {
  if (Allowance* const allowance = Allowance::current()) allowance->reached(share);
}

// Whether work of this length would end too late.
inline bool is_short_for(Allowance::Clock::duration work) {
  const Allowance* const allowance = Allowance::current();
  return allowance != nullptr && allowance->is_short_for(work);
}

inline bool is_hopeless() {
  const Allowance* const allowance = Allowance::current();
  return allowance != nullptr && allowance->is_hopeless();
}

// Counts memory that is about to be taken for something that stays. Throws OutOfRoom.
inline void take(std::size_t bytes) {
  if (Allowance* const allowance = Allowance::current()) allowance->take(bytes);
}

inline void give(std::size_t bytes) noexcept {
  if (Allowance* const allowance = Allowance::current()) allowance->give(bytes);
}

// list.push_back(item), whose memory is counted: while a list grows, it is there twice.
template <class Item>
Item& append(std::vector<Item>& list, Item item) {
  const std::size_t before = list.capacity();
  const bool grows = list.size() == before;
  if (grows) take((before == 0 ? 1 : 2 * before) * sizeof(Item));
  list.push_back(std::move(item));
  if (grows) give(before * sizeof(Item));
  return list.back();
}

// The same of text: out += piece.
inline void append(std::string& out, std::string_view piece) {
  const std::size_t before = out.capacity();
  if (piece.size() > before - out.size()) {
    const std::size_t next = std::max(2 * before, out.size() + piece.size());
    take(next);
    out.reserve(next);
    give(before);
  }
  out += piece;
}

// list.reserve(count), counted.
template <class Item>
void reserve(std::vector<Item>& list, std::size_t count) {
  if (count <= list.capacity()) return;
  take((count - list.capacity()) * sizeof(Item));
  list.reserve(count);
}

// The room of a string that is about to be made; a short one needs none of its own.
inline void take_text(std::size_t length) {
  if (length >= sizeof(std::string)) take(length + 1);
}

// What the heap adds to something small that is allocated on its own.
inline constexpr std::size_t kHeapBlock = 16;

// What an entry of a hash table takes beside what it holds: its node, and its share of the table, which is there twice
// while it grows.
inline constexpr std::size_t kHashEntry = 64;

// table.emplace(…) of small keys and values, counted, and table.erase(found).
template <class Table, class... Arguments>
auto emplace(Table& table, Arguments&&... arguments) {
  take(kHashEntry);
  const auto made = table.emplace(std::forward<Arguments>(arguments)...);
  if (!made.second) give(kHashEntry);
  return made;
}
template <class Table, class Found>
void erase(Table& table, Found found) {
  table.erase(found);
  give(kHashEntry);
}

}  // namespace berth::internal::base

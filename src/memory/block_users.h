// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "berth/device/stream.h"

// The streams that use a piece of memory, for strategies without numbers for streams (direct, arena): after its free they are asked, one
// event each, whether they are past it. Only `add` needs the heap of the allocator; events need what their backend needs. Not
// thread-safe. The streams are asked, and let go of, without a lock: both may run anything.
namespace berth::internal::memory {

class BlockUsers {
 public:
  bool empty() const noexcept { return users_.empty(); }

  // False when there is no heap. No stream is no user.
  bool add(StreamRef stream) noexcept;

  // All of another's, to be asked anew: what they have been given until now counts too. Throws bad_alloc, and has changed nothing then.
  void add_all(const BlockUsers& others);

  // Whether every stream is past what it had been given when this was first called, as seen by `on` (no stream: the host): streams that
  // `on` is known to come after count. With `wait`, waits for them, unless inside a stream's host function. What is done is forgotten.
  bool are_done(bool wait, StreamRef on = {}) noexcept;

  // Puts work behind all of them. False when a stream would not take it. REQUIRES: there are some.
  bool enqueue_behind(std::function<void()> work) noexcept;

 private:
  struct User {
    std::shared_ptr<StreamState> stream;
    std::uint64_t generation;  // of the process that has its worker: a forked child's memory no inherited stream can touch
    std::uint64_t point = 0;   // the first event that can be behind its work; 0: that is not said yet
    Event event = {};          // without a point: not recorded yet
  };
  static bool is_done(User& user, bool wait) noexcept;

  std::vector<User> users_;  // one for each stream
};

}  // namespace berth::internal::memory

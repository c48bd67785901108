// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "berth/device/stream.h"
#include "os/process/fork.h"

// The streams that use a range of memory, for strategies that do not number streams (direct, arena): after the
// free, one event for each stream tells whether the stream is past it. Only `add` allocates from the heap of
// the allocator; events allocate what their backend needs. Not thread-safe. Streams are queried, and their
// handles dropped, without a lock held: both may run arbitrary code.
namespace berth::internal::memory {

class BlockUsers {
 public:
  bool empty() const noexcept { return users_.empty(); }

  // Returns false when the heap is exhausted. The null stream is ignored.
  bool add(StreamRef stream) noexcept;

  // Adds all streams of another, with new events: work submitted until now counts too. Throws bad_alloc, and
  // then has changed nothing.
  void add_all(const BlockUsers& others);

  // Whether every stream is past the work that it had been given when this was first called, as seen by `on`
  // (null: the host): a stream that `on` is known to be ordered after counts as past. With `wait`, waits for
  // the streams, unless inside a stream's host function. Streams that are done are removed.
  bool are_done(bool wait, StreamRef on = {}) noexcept;

  // Enqueues work that runs after all of them. Returns false when a stream rejects it. REQUIRES: !empty().
  bool enqueue_behind(std::function<void()> work) noexcept;

 private:
  struct User {
    std::shared_ptr<StreamState> stream;
    os::Origin origin = {};   // of its worker: an inherited stream cannot touch a child's memory
    std::uint64_t point = 0;  // the first event that can be after its work; 0: not determined yet
    Event event = {};         // without a point: not recorded yet
  };
  static bool is_done(User& user, bool wait) noexcept;

  std::vector<User> users_;  // one for each stream
};

}  // namespace berth::internal::memory

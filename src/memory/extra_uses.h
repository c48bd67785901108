// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "memory/stream_uses.h"

// The blocks of an allocator that are used by streams other than their own, keyed by a number that the
// allocator assigns. A freed block waits here, and keeps its number, until each of these streams is past the
// free. Only `add` allocates from the heap. Not thread-safe: its owner locks.
namespace berth::internal::memory {

class ExtraUses {
 public:
  using Key = std::uint64_t;
  struct Use {
    std::uint64_t stream_id;
    std::uint64_t point;  // of the free, on that stream
  };

  bool empty() const noexcept { return live_.empty() && freed_.empty(); }
  bool any_freed() const noexcept { return !freed_.empty(); }

  // A stream uses a live block. Returns false when the heap is exhausted.
  bool add(Key key, std::uint64_t stream_id) noexcept;

  // The block is freed. True: it must wait here. False: it has no extra uses, or none of their streams has a
  // number any more.
  bool free(Key key, StreamUses& streams) noexcept;

  // Finds the next freed block after `at` that waits for no stream any more, according to `is_over(key, use)`;
  // removes it, and sets `at` to its key. Returns false when there is none. Start with `at` = 0, which is no
  // key.
  template <class IsOver>
  bool take_over(Key& at, IsOver is_over) noexcept {
    for (auto next = freed_.upper_bound(at); next != freed_.end(); ++next) {
      std::erase_if(next->second, [&](const Use& use) { return is_over(next->first, use); });
      if (!next->second.empty()) continue;
      at = next->first;
      freed_.erase(next);
      return true;
    }
    return false;
  }

  template <class Visit>
  void for_each_freed(Visit visit) const {
    for (const auto& [key, uses] : freed_) visit(key);
  }

  // Whether a stream is past a use: it has reached the point, or no longer exists.
  static bool is_over(const Use& use, const StreamUses& streams) noexcept {
    const std::uint32_t number = streams.find(use.stream_id);
    return number == 0 || streams[number].done >= use.point;
  }

 private:
  // One use for each stream. They are maps because nodes move from one to the other without allocation.
  std::map<Key, std::vector<Use>> live_;
  std::map<Key, std::vector<Use>> freed_;
};

}  // namespace berth::internal::memory

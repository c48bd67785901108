// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "berth/base/checked.h"
#include "berth/memory/allocator.h"
#include "berth/observe/replay.h"
#include "os/ticks.h"

// The timed loop, one for all strategies. A `Player` holds the blocks of one replay; at each step it calls the
// allocator and moves the result. Counting, validation and printing happen before and after.
namespace berth::internal::observe {

inline constexpr std::size_t kTouchEvery = 4096;

// Validates the options; throws as `replay` does.
void check_replay(const ReplayOptions& options);

// A new allocator of the strategy, or the device's default allocator with its cache released.
std::shared_ptr<Allocator> replay_allocator(const ReplayOptions& options);

// The script's streams by number, on the device of the options. On a device without streams all of them are "no
// stream".
std::vector<Stream> replay_streams(const ReplayScript& script, const ReplayOptions& options);

// Blocks of a berth allocator.
class BlockPlayer {
 public:
  BlockPlayer(Allocator& allocator, const ReplayScript& script, std::span<const Stream> streams)
      : allocator_(allocator), blocks_(script.blocks), streams_(streams.begin(), streams.end()) {}

  void* take(const ReplayStep& step) {
    // Constructed in the table, as in a program that keeps blocks in objects of its own.
    return (new (&blocks_[step.block]) Block(allocator_.allocate({.bytes = step.bytes, .stream = streams_[step.stream]}, Site())))->data;
  }
  void drop(const ReplayStep& step) noexcept { allocator_.deallocate(blocks_[step.block]); }

 private:
  Allocator& allocator_;
  std::vector<Block> blocks_;
  std::vector<StreamRef> streams_;  // by number; the first is "no stream"
};

// Blocks of the C library, or of an allocator preloaded in its place.
class MallocPlayer {
 public:
  explicit MallocPlayer(const ReplayScript& script) : blocks_(script.blocks) {}

  void* take(const ReplayStep& step) {
    void*& block = blocks_[step.block];
    block = step.bytes == 0 ? nullptr : std::aligned_alloc(kAlignment, *try_align_up(step.bytes, kAlignment));
    if (block == nullptr && step.bytes != 0) [[unlikely]]
      refuse(step.bytes);
    return block;
  }
  void drop(const ReplayStep& step) noexcept { std::free(blocks_[step.block]); }

 private:
  static constexpr std::size_t kAlignment = 64;
  [[noreturn]] static void refuse(std::size_t bytes);

  std::vector<void*> blocks_;
};

// One replay by one thread. The destructor frees the blocks that are live when it ends, early or not.
template <class Player>
class Performance {
 public:
  template <class... Arguments>
  explicit Performance(const ReplayScript& script, Arguments&&... arguments)
      : steps_(script.steps), blocks_(script.blocks), player_(std::forward<Arguments>(arguments)...) {}
  Performance(const Performance&) = delete;
  Performance& operator=(const Performance&) = delete;

  ~Performance() {
    std::vector<const ReplayStep*> live(blocks_);
    for (const ReplayStep& step : steps_.first(done_)) live[step.block] = step.allocates ? &step : nullptr;
    for (const ReplayStep* step : live) {
      if (step != nullptr) player_.drop(*step);
    }
  }

  template <bool kTouch>
  void run() {
    for (; done_ < steps_.size(); ++done_) {
      const ReplayStep& step = steps_[done_];
      if (!step.allocates) {
        player_.drop(step);
        continue;
      }
      void* const data = player_.take(step);
      if constexpr (kTouch) touch(data, step.bytes);
    }
  }

  // Calls visit(index, address) after each step; the address is null for a free.
  template <class Visit>
  void run_telling(const Visit& visit) {
    for (; done_ < steps_.size(); ++done_) {
      const ReplayStep& step = steps_[done_];
      void* const data = step.allocates ? player_.take(step) : (player_.drop(step), nullptr);
      visit(done_, data);
    }
  }

  // The same, timing every call: its ticks are stored in `took`. REQUIRES: took.size() == number of steps.
  template <bool kTouch>
  void run_timed(std::span<std::uint64_t> took) {
    for (; done_ < steps_.size(); ++done_) {
      const ReplayStep& step = steps_[done_];
      const std::uint64_t before = os::ticks_in_order();
      void* const data = step.allocates ? player_.take(step) : (player_.drop(step), nullptr);
      took[done_] = os::ticks_in_order() - before;
      if constexpr (kTouch) {
        if (step.allocates) touch(data, step.bytes);
      }
    }
  }

 private:
  static void touch(void* data, std::size_t bytes) noexcept {
    auto* const at = static_cast<volatile unsigned char*>(data);  // volatile: the bytes are never read
    for (std::size_t offset = 0; offset < bytes; offset += kTouchEvery) at[offset] = 1;
  }

  std::span<const ReplayStep> steps_;
  std::size_t blocks_;
  std::size_t done_ = 0;  // steps done so far
  Player player_;
};

}  // namespace berth::internal::observe

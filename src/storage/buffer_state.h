// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "berth/storage/buffer.h"
#include "storage/make.h"

// The reference-counted state behind the handles of a buffer. Only the atomics may change while several threads
// have handles.
namespace berth {

struct Buffer::State {
  Block block;  // data, bytes and device are valid for every owner; the rest for Owner::allocator
  Allocator* allocator = nullptr;
  std::shared_ptr<Allocator> kept_alive;                  // owns `allocator`; empty for default allocators,
                                                          // which are never destroyed
  std::unique_ptr<Deleter> deleter;                       // for the other owners; empty: borrowed
  std::unique_ptr<internal::storage::BufferGuard> guard;  // once the block is shared or mapped: releases it
                                                          // instead
  std::shared_ptr<const void> page_lock;                  // of memory that is locked for a device on its own; let go first
  std::size_t spare_bytes = 0;                            // at the end of the block: what no view was made for
  std::atomic<int> pins{0};                               // users of the address, beside the handles
  std::atomic<bool> watched{false};                       // it has an entry in storage/watch.h
  Owner owner = Owner::none;
  bool read_only = false;

  // Allocates the block directly into the member; if that throws, there is nothing to undo.
  State(Request&& request, Allocator& given, std::shared_ptr<Allocator>&& keep);
  State(const Block& from, Allocator& given, std::shared_ptr<Allocator>&& keep) noexcept
      : block(from), allocator(&given), kept_alive(std::move(keep)), owner(Owner::allocator) {}
  State(const Block& outside, Owner given, bool is_read_only) noexcept : block(outside), owner(given), read_only(is_read_only) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (watched.load(std::memory_order_relaxed)) [[unlikely]]  // relaxed: `watched` was set through a handle,
                                                               // and the last handle is gone
      internal::storage::BufferMaker::forget(this);
    page_lock.reset();
    if (guard)
      guard->release_block(block, allocator, std::move(kept_alive));
    else if (allocator != nullptr)
      allocator->deallocate(block);
    else if (deleter)
      (*deleter)(block.data);
  }
};

}  // namespace berth

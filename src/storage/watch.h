// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/relaxed.h"
#include "berth/record/stack.h"
#include "berth/storage/storage.h"

// Tracks who holds buffers, while a tracker is active (observe/tracker.h). Every buffer made then gets an entry
// here, and every storage over one gets a note: a reference count of its own, common to the copies of that
// storage, which ends with the last of them. So a view that keeps a buffer alive is distinguished from the
// storage it was made from. Without a tracker this costs one load for each storage that is made. Any thread.
namespace berth::internal::storage {

// The number of active trackers.
inline constinit Relaxed<std::uint32_t> g_storage_watchers;
inline bool is_watching_storages() noexcept { return g_storage_watchers.load() != 0; }

// Stacks are captured at the largest depth that any caller requested.
void begin_watching_storages(std::size_t stack_depth) noexcept;
void end_watching_storages() noexcept;

struct StorageNote {
  DType dtype = DType::u8;
  Shape shape;
  Strides strides;
  bool is_whole = false;       // it covers all of its buffer, in order
  std::uint64_t since_ns = 0;  // steady clock
  StackId stack;
  long handles = 0;
};

struct BufferNote {
  Block block;  // data, bytes and device are valid for every buffer; the rest if an allocator owns it
  Owner owner = Owner::none;
  std::string allocator;       // its name
  std::uint64_t since_ns = 0;  // 0: older than the watching
  SiteId site;
  StackId stack;
  long handles = 0;  // not counting those of `storages`
  int pins = 0;      // exports and pending copies that keep its address
  std::vector<StorageNote> storages;
};

// Every live buffer with an entry, in the order of entry.
std::vector<BufferNote> watched_buffers();

}  // namespace berth::internal::storage

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

// Who holds buffers, while someone wants to know (observe/tracker.h). Every buffer that is made then is entered here, and every storage over
// one gets a note: a count of its own, shared by the copies of that storage, which is gone when the last of them is. So a view that keeps a
// buffer is told from the storage it was made from. While nobody watches this costs one load for each storage that is made.
namespace berth::internal::storage {

// How many want to know.
inline constinit Relaxed<std::uint32_t> g_storage_watchers;
inline bool is_watching_storages() noexcept { return g_storage_watchers.load() != 0; }

// Stacks are kept as deep as the deepest that was asked for.
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
  Block block;  // data, bytes and device of every buffer; the rest if an allocator owns it
  Owner owner = Owner::none;
  std::string allocator;       // its name
  std::uint64_t since_ns = 0;  // 0: older than the watching
  SiteId site;
  StackId stack;
  long handles = 0;  // beyond those of the storages below
  int pins = 0;      // exports and copies under way that keep its address
  std::vector<StorageNote> storages;
};

// Every buffer that was entered and lives, in the order they were.
std::vector<BufferNote> watched_buffers();

}  // namespace berth::internal::storage

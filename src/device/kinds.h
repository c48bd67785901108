// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "berth/device/backend.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// The table behind Device and the registry: one entry per kind, never removed. Reading it is lock-free. Any
// thread.
namespace berth::internal::device {

// The backends of one kind, by index, in a two-level table, so that an unused kind costs little.
class BackendTable {
 public:
  static constexpr int kMost = 65536;

  Backend* get(int index) const noexcept {
    const Chunk* const chunk = chunks_[static_cast<std::size_t>(index) / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : (*chunk)[static_cast<std::size_t>(index) % kChunk].load(std::memory_order_acquire);
  }

  // REQUIRES: one caller at a time.
  void set(int index, Backend* backend) {
    std::atomic<Chunk*>& entry = chunks_[static_cast<std::size_t>(index) / kChunk];
    if (entry.load(std::memory_order_relaxed) == nullptr) entry.store(new Chunk{}, std::memory_order_release);
    // release: a thread that loads the pointer sees the backend complete.
    (*entry.load(std::memory_order_relaxed))[static_cast<std::size_t>(index) % kChunk].store(backend, std::memory_order_release);
  }

 private:
  static constexpr std::size_t kChunk = 256;
  using Chunk = std::array<std::atomic<Backend*>, kChunk>;
  std::array<std::atomic<Chunk*>, kMost / kChunk> chunks_{};
};

struct Kind {
  std::string name;
  std::unique_ptr<BackendFactory> factory;
  BackendTable backends;

  // Devices whose backend a thread is making, with that thread's process: each backend is made once, and no lock
  // is held while the factory runs.
  os::Mutex mutex;
  os::Condition changed;
  std::map<int, os::Origin> being_made BERTH_GUARDED_BY(mutex);
};

// Adds a kind. Throws ArgumentError when the name is taken or malformed. Returns its number.
std::uint16_t add_kind(std::string_view name, std::unique_ptr<BackendFactory> factory);

// nullptr when there is none. The first call adds the built-in kinds.
Kind* find_kind(std::string_view name);
Kind* kind_at(std::uint16_t number) noexcept;
std::uint16_t kind_number(std::string_view name);  // REQUIRES: the kind exists
std::uint16_t kind_count() noexcept;

// "cpu, cuda, pinned, shared, sim"
std::string known_kinds();

}  // namespace berth::internal::device

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <new>

// Objects by number, from 1, at fixed addresses: one thread at a time adds, and any thread reads meanwhile, with
// no lock. None is removed before the list is destroyed, and all of them with it.
namespace berth::internal::memory {

template <class T, std::uint32_t kMost>
class PublishedList {
 public:
  PublishedList() noexcept = default;
  ~PublishedList() {
    for (std::uint32_t i = 1; i <= count(); ++i) delete &(*this)[i];
    for (const std::atomic<Chunk*>& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }
  PublishedList(const PublishedList&) = delete;
  PublishedList& operator=(const PublishedList&) = delete;

  std::uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }  // acquire: so many pointers are there
  // REQUIRES: 0 < number <= count().
  T& operator[](std::uint32_t number) const noexcept {
    // acquire, both: the object is complete.
    const Chunk* const chunk = chunks_[number / kPerChunk].load(std::memory_order_acquire);
    return *(*chunk)[number % kPerChunk].load(std::memory_order_acquire);
  }

  // Adds what `make(number)` returns, a pointer from `new` or nullptr, and returns it; nullptr when there is no
  // heap, or the list is full.
  template <class Make>
  T* add(const Make& make) noexcept {
    const std::uint32_t number = count() + 1;
    if (number > kMost) return nullptr;
    std::atomic<Chunk*>& chunk = chunks_[number / kPerChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      auto* const made = new (std::nothrow) Chunk{};
      if (made == nullptr) return nullptr;
      chunk.store(made, std::memory_order_release);  // pairs with the acquire of readers, here and below
    }
    T* const made = make(number);
    if (made == nullptr) return nullptr;
    (*chunk.load(std::memory_order_relaxed))[number % kPerChunk].store(made, std::memory_order_release);
    count_.store(number, std::memory_order_release);
    return made;
  }

 private:
  static constexpr std::uint32_t kPerChunk = 512;
  using Chunk = std::array<std::atomic<T*>, kPerChunk>;

  std::array<std::atomic<Chunk*>, kMost / kPerChunk + 1> chunks_{};
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace berth::internal::memory

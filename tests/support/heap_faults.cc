// SPDX-License-Identifier: Apache-2.0
#include "support/heap_faults.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>

namespace {

constinit thread_local std::uint64_t t_countdown = 0;  // 0: off
constinit thread_local bool t_happened = false;
constinit thread_local std::int64_t t_live = 0;
constinit thread_local std::int64_t t_bytes = 0;
constinit thread_local std::int64_t t_peak_bytes = 0;
constinit thread_local const std::function<void()>* t_hook = nullptr;

bool must_fail() noexcept {
  if (t_countdown == 0 || --t_countdown != 0) return false;
  t_happened = true;
  return true;
}

void* get(std::size_t bytes, std::size_t alignment) noexcept {
  if (const auto* const hook = std::exchange(t_hook, nullptr)) {
    (*hook)();
    t_hook = hook;
  }
  if (must_fail()) return nullptr;
  void* const block = alignment <= alignof(std::max_align_t)
                          ? std::malloc(bytes == 0 ? 1 : bytes)
                          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  t_live += block != nullptr ? 1 : 0;
  t_bytes += static_cast<std::int64_t>(malloc_usable_size(block));
  t_peak_bytes = std::max(t_peak_bytes, t_bytes);
  return block;
}

void* get_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const block = get(bytes, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void put(void* block) noexcept {
  t_live -= block != nullptr ? 1 : 0;
  t_bytes -= static_cast<std::int64_t>(malloc_usable_size(block));
  std::free(block);
}

}  // namespace

void* operator new(std::size_t bytes) { return get_or_throw(bytes, 1); }
void* operator new[](std::size_t bytes) { return get_or_throw(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return get_or_throw(bytes, static_cast<std::size_t>(alignment)); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return get_or_throw(bytes, static_cast<std::size_t>(alignment)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return get(bytes, 1); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return get(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return get(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return get(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { put(block); }
void operator delete[](void* block) noexcept { put(block); }
void operator delete(void* block, std::size_t) noexcept { put(block); }
void operator delete[](void* block, std::size_t) noexcept { put(block); }
void operator delete(void* block, std::align_val_t) noexcept { put(block); }
void operator delete[](void* block, std::align_val_t) noexcept { put(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { put(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { put(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { put(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { put(block); }

namespace berth::testing {

AtNew::AtNew(std::function<void()> hook) : hook_(std::move(hook)) { t_hook = &hook_; }
AtNew::~AtNew() { t_hook = nullptr; }

FailNthNew::FailNthNew(std::uint64_t nth) noexcept {
  t_happened = false;
  t_countdown = nth;
}
FailNthNew::~FailNthNew() { t_countdown = 0; }
bool FailNthNew::happened() const noexcept { return t_happened; }
PeakOfNews::PeakOfNews() noexcept { t_bytes = t_peak_bytes = 0; }
std::int64_t PeakOfNews::peak_bytes() const noexcept { return t_peak_bytes; }
std::int64_t live_news() noexcept { return t_live; }

}  // namespace berth::testing

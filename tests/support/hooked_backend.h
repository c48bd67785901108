// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "support/everything.h"

// Host memory with a hook: a test can run code while an allocator is inside a call to its device, when it holds
// no lock. Pages are 4 KiB; ranges begin 4 KiB past a multiple of 64 KiB where the requested alignment allows
// it.
namespace berth::testing {

class HookedBackend : public Backend {
 public:
  explicit HookedBackend(Device device) : Backend(device), host_(berth::backend("cpu")) {
    properties_ = host_.properties();
    properties_.unit_bytes = 4_KiB;
    properties_.abilities = {};
  }

  // Runs once, at the start of the next commit. Not to be set while a commit runs.
  void at_next_commit(std::function<void()> hook) { hook_ = std::move(hook); }
  // The same for the next reserve.
  void at_next_reserve(std::function<void()> hook) { reserve_hook_ = std::move(hook); }
  int reserves() const { return reserves_; }  // successful ones

  const BackendProperties& properties() const noexcept override { return properties_; }
  MemoryInfo memory_info() const override { return {1_GiB, 1_GiB, false}; }

  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override {
    if (reserve_hook_) std::exchange(reserve_hook_, nullptr)();
    const std::size_t shift = alignment <= kShift ? kShift : 0;
    const Result<void*> range = host_.reserve(bytes + 64_KiB, std::max<std::size_t>(alignment, 64_KiB));
    if (!range) return range;
    ++reserves_;
    return static_cast<void*>(static_cast<std::byte*>(*range) + shift);
  }
  Status release(void* address, std::size_t bytes) noexcept override {
    const std::size_t shift = reinterpret_cast<std::uintptr_t>(address) % 64_KiB == kShift ? kShift : 0;
    return host_.release(static_cast<std::byte*>(address) - shift, bytes + 64_KiB);
  }
  Status commit(void* address, std::size_t bytes) noexcept override {
    if (hook_) std::exchange(hook_, nullptr)();
    return host_.commit(address, bytes);
  }
  Status decommit(void* address, std::size_t bytes) noexcept override { return host_.decommit(address, bytes); }
  Status copy(const Transfer&, StreamRef) noexcept override { return kUnsupported; }
  Status fill(void*, std::size_t, std::span<const std::byte>, StreamRef) noexcept override { return kUnsupported; }

 private:
  static constexpr std::size_t kShift = 4_KiB;
  static constexpr Failure kUnsupported{ErrorCode::unsupported, 0, "not needed in these tests"};

  Backend& host_;
  BackendProperties properties_;
  std::function<void()> hook_;
  std::function<void()> reserve_hook_;
  std::atomic<int> reserves_ = 0;
};

inline HookedBackend& hooked_backend() {
  struct Factory : BackendFactory {
    int count() override { return 1; }
    std::string unavailable_reason() override { return ""; }
    std::unique_ptr<Backend> make(Device device) override { return std::make_unique<HookedBackend>(device); }
  };
  static const bool registered = [] {
    register_backend("hooked", std::make_unique<Factory>());
    return true;
  }();
  (void)registered;
  return dynamic_cast<HookedBackend&>(berth::backend("hooked:0"));
}

}  // namespace berth::testing

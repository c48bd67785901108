// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "berth/copy/convert.h"
#include "berth/device/element_copy.h"
#include "support/everything.h"

// Devices for every combination of properties that routes depend on, each with one failing call on demand.
// Their memory is the host's, but its addresses are shifted to unmapped ones, so that a direct access faults at
// once. A call that a backend need not support is refused: a copy with neither side on this device, or with the
// other side neither on the host nor on a reachable device; overlapping sides; elements without kernels.
namespace berth::testing {

// Bits of a fake device's index. `second` makes another device of the same abilities.
enum FakeBits : int { kKernels = 1, kWantsPinned = 2, kReaches = 4, kSecond = 8, kFakes = 16 };

class FakeBackend : public Backend {
 public:
  enum class Call : unsigned char { none, copy, fill, elements, commit };

  explicit FakeBackend(Device device) : Backend(device), host_(berth::backend("cpu")) {
    properties_ = host_.properties();
    properties_.abilities = {.kernels = (device.index() & kKernels) != 0, .wants_pinned = (device.index() & kWantsPinned) != 0};
  }

  const BackendProperties& properties() const noexcept override { return properties_; }
  MemoryInfo memory_info() const override { return {1_GiB, 1_GiB, false}; }
  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override {
    const Result<void*> range = host_.reserve(bytes, alignment);
    return range ? Result<void*>(shifted(*range)) : range;
  }
  Status release(void* address, std::size_t bytes) noexcept override { return host_.release(real(address), bytes); }
  Status commit(void* address, std::size_t bytes) noexcept override {
    if (fails(Call::commit)) return Failure{ErrorCode::out_of_memory, 0, "a fault was asked for"};
    return host_.commit(real(address), bytes);
  }
  Status decommit(void* address, std::size_t bytes) noexcept override { return host_.decommit(real(address), bytes); }

  Status copy(const Transfer& transfer, StreamRef stream) noexcept override {
    if (fails(Call::copy)) return kFault;
    if (stream) return refused("the tests give it no stream");
    if (transfer.target_device != device() && transfer.source_device != device()) return refused("neither end is here");
    for (const Device end : {transfer.target_device, transfer.source_device}) {
      if (end != device() && !on_host(end) && !reaches(end)) return refused("the other end is out of reach");
    }
    const auto* const from = static_cast<const std::byte*>(at(transfer.source, transfer.source_device));
    auto* const to = static_cast<std::byte*>(at(transfer.target, transfer.target_device));
    if (from < to + transfer.bytes && to < from + transfer.bytes) return refused("the sides overlap");
    std::memcpy(to, from, transfer.bytes);
    return {};
  }

  Status fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept override {
    if (fails(Call::fill)) return kFault;
    if (stream || bytes % pattern.size() != 0) return refused("that is no fill");
    for (std::size_t i = 0; i < bytes; ++i) static_cast<std::byte*>(real(target))[i] = pattern[i % pattern.size()];
    return {};
  }

  Status copy_elements(const ElementCopy& copy, StreamRef stream) noexcept override {
    if (fails(Call::elements)) return kFault;
    if (stream || !properties_.abilities.kernels) return refused("there are no kernels");
    elements(copy, 0, 0, 0);
    return {};
  }

  bool reaches(Device other) const noexcept override { return (device().index() & kReaches) != 0 && other.kind_name() == "fake"; }

  static std::uint64_t calls() { return calls_; }
  static void reset() { calls_ = 0, fail_at_ = 0, failed_ = Call::none; }
  // The nth call from here on, over all fake devices, fails once.
  static void fail_after(std::uint64_t nth) { reset(), fail_at_ = nth; }
  static Call failed() { return failed_; }

 private:
  static constexpr std::uintptr_t kShift = std::uintptr_t{1} << 60;
  static constexpr Failure kFault{ErrorCode::device_error, 5, "a fault was asked for"};

  static Failure refused(const char* why) { return Failure{ErrorCode::unsupported, 0, why}; }
  static void* shifted(void* address) { return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) + kShift); }
  static void* real(const void* address) { return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) - kShift); }
  static bool on_host(Device device) { return berth::backend(device).properties().abilities.host_access; }
  static void* at(const void* address, Device device) { return on_host(device) ? const_cast<void*>(address) : real(address); }

  static bool fails(Call call) {
    if (++calls_ != fail_at_) return false;
    failed_ = call;
    return true;
  }

  static void elements(const ElementCopy& copy, std::size_t axis, std::int64_t from, std::int64_t to) {
    if (axis == copy.shape.rank()) {
      convert_element(
          static_cast<std::byte*>(real(copy.source)) + from * static_cast<std::int64_t>(size_bytes(copy.source_dtype)), copy.source_dtype,
          static_cast<std::byte*>(real(copy.target)) + to * static_cast<std::int64_t>(size_bytes(copy.target_dtype)), copy.target_dtype);
      return;
    }
    for (std::int64_t i = 0; i < copy.shape[axis]; ++i)
      elements(copy, axis + 1, from + i * copy.source_strides[axis], to + i * copy.target_strides[axis]);
  }

  static inline std::atomic<std::uint64_t> calls_ = 0;  // several threads may call
  static inline std::uint64_t fail_at_ = 0;             // 0: none
  static inline Call failed_ = Call::none;

  Backend& host_;
  BackendProperties properties_;
};

// Plain host memory that claims to be page-locked.
class LockedBackend : public Backend {
 public:
  explicit LockedBackend(Device device) : Backend(device), host_(berth::backend("cpu")), properties_(host_.properties()) {
    properties_.abilities.pinned = true;
  }
  const BackendProperties& properties() const noexcept override { return properties_; }
  MemoryInfo memory_info() const override { return host_.memory_info(); }
  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override { return host_.reserve(bytes, alignment); }
  Status commit(void* address, std::size_t bytes) noexcept override { return host_.commit(address, bytes); }
  Status decommit(void* address, std::size_t bytes) noexcept override { return host_.decommit(address, bytes); }
  Status release(void* address, std::size_t bytes) noexcept override { return host_.release(address, bytes); }
  Status copy(const Transfer& transfer, StreamRef stream) noexcept override { return host_.copy(transfer, stream); }
  Status fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept override {
    return host_.fill(target, bytes, pattern, stream);
  }

 private:
  Backend& host_;
  BackendProperties properties_;
};

template <class Made, int Count>
struct FakeFactory : BackendFactory {
  int count() override { return Count; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override { return std::make_unique<Made>(device); }
};

// All of them, host memories first. Each block comes directly from its device, so that every allocation can be
// made to fail, and so that many devices do not reserve more addresses than a sanitizer leaves.
inline const std::vector<Device>& fake_devices() {
  static const std::vector<Device> devices = [] {
    register_backend("fake", std::make_unique<FakeFactory<FakeBackend, kFakes>>());
    register_backend("locked", std::make_unique<FakeFactory<LockedBackend, 1>>());
    std::vector<Device> made{"cpu", "locked:0"};
    for (int index = 0; index < kFakes; ++index) made.emplace_back("fake", index);
    for (const Device device : made) {
      if (device != Device()) set_default_allocator(device, direct(device));
    }
    return made;
  }();
  return devices;
}

// A fake device by its bits.
inline Device fake(int bits) {
  (void)fake_devices();
  return Device("fake", bits);
}

}  // namespace berth::testing

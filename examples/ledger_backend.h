// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"

// A backend for a new kind of device, written outside the library. A "ledger" keeps its bytes on the host's
// heap, gives access only through its own copies and fills, and counts the bytes that were copied in.
// custom_backend.cc registers and uses it; tests/conformance/backends_test.cc runs on it the suite that every
// backend of the library passes. Any thread.
namespace ledger {

using namespace berth;

constexpr std::size_t kPage = 4_KiB;
constexpr std::size_t kCapacity = 16_MiB;
constexpr Failure kNotPages{ErrorCode::invalid_argument, 0, "the range is not reserved, or its pages are in the wrong state"};
constexpr Failure kNotCommitted{ErrorCode::out_of_bounds, 0, "an address is not committed memory of the ledger"};
constexpr Failure kNotPattern{ErrorCode::invalid_argument, 0, "a pattern has 1, 2, 4, 8 or 16 bytes and divides the target"};
constexpr Failure kNoStreams{ErrorCode::unsupported, 0, "the ledger has no streams"};

class Ledger : public Backend {
 public:
  explicit Ledger(Device device) : Backend(device) {
    // No abilities: the host cannot access the memory, pages cannot be moved, there are no streams, and a
    // forked child must not use it.
    properties_ = {
        .description = "host memory behind a ledger", .unit_bytes = kPage, .alignment = 64, .max_alignment = 1_MiB, .abilities = {}};
  }

  std::size_t bytes_in() const noexcept { return bytes_in_; }
  const BackendProperties& properties() const noexcept override { return properties_; }
  MemoryInfo memory_info() const override {
    const std::lock_guard lock(mutex_);
    return {kCapacity, kCapacity - committed_bytes_, false};
  }

  // A reserved range has addresses, here from the heap; its pages count as used once they are committed.
  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override {
    const std::size_t step = std::max(alignment, kPage);
    const auto length = try_align_up(bytes, step);
    void* const start = length && *length != 0 ? std::aligned_alloc(step, *length) : nullptr;
    if (start == nullptr) return Failure{ErrorCode::out_of_memory, 0, "the heap has no range of that size"};
    const std::lock_guard lock(mutex_);
    try {
      ranges_.emplace(static_cast<std::byte*>(start), std::vector<char>(*try_align_up(bytes, kPage) / kPage));
    } catch (const std::bad_alloc&) {
      std::free(start);
      return Failure{ErrorCode::out_of_memory, 0, "no heap for the table of ranges"};
    }
    return start;
  }

  Status release(void* address, std::size_t) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(static_cast<std::byte*>(address));
    if (found == ranges_.end()) return kNotPages;
    committed_bytes_ -= kPage * static_cast<std::size_t>(std::ranges::count(found->second, 1));
    ranges_.erase(found);
    std::free(address);
    return {};
  }

  Status commit(void* address, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    if (bytes > kCapacity - committed_bytes_) return Failure{ErrorCode::out_of_memory, 0, "the ledger is full"};
    return change(address, bytes, true);
  }
  Status decommit(void* address, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    return change(address, bytes, false);
  }

  // One end is on this device; the other is too, or is memory that the host can access.
  Status copy(const Transfer& transfer, StreamRef stream) noexcept override {
    if (stream) return kNoStreams;
    const bool in = transfer.target_device == device();
    const bool out = transfer.source_device == device();
    const std::lock_guard lock(mutex_);
    if ((in && !is_committed(transfer.target, transfer.bytes)) || (out && !is_committed(transfer.source, transfer.bytes)))
      return kNotCommitted;
    if (transfer.bytes != 0) std::memmove(transfer.target, transfer.source, transfer.bytes);
    if (in && !out) bytes_in_ += transfer.bytes;
    return {};
  }

  Status fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept override {
    if (stream) return kNoStreams;
    if (!is_power_of_two(pattern.size()) || pattern.size() > 16 || bytes % pattern.size() != 0) return kNotPattern;
    const std::lock_guard lock(mutex_);
    if (!is_committed(target, bytes)) return kNotCommitted;
    auto* const start = static_cast<std::byte*>(target);
    for (std::size_t at = 0; at < bytes; at += pattern.size()) std::memcpy(start + at, pattern.data(), pattern.size());
    return {};
  }

 private:
  // The flags of the pages under the bytes; empty when the bytes are not inside one range. REQUIRES: the mutex
  // is locked.
  std::span<char> pages(const void* address, std::size_t bytes) noexcept {
    auto* const start = static_cast<std::byte*>(const_cast<void*>(address));
    const auto after = ranges_.upper_bound(start);
    if (bytes == 0 || after == ranges_.begin()) return {};
    auto& [base, flags] = *std::prev(after);
    const auto offset = static_cast<std::size_t>(start - base);
    if (!fits(offset, bytes, flags.size() * kPage)) return {};
    const std::size_t first = offset / kPage;
    return std::span(flags).subspan(first, (offset + bytes - 1) / kPage + 1 - first);
  }

  bool is_committed(const void* address, std::size_t bytes) noexcept {
    const std::span<char> touched = pages(address, bytes);
    return bytes == 0 || (!touched.empty() && std::ranges::find(touched, 0) == touched.end());
  }

  // All or nothing: fails unless every page is in the opposite state. REQUIRES: the mutex is locked.
  Status change(void* address, std::size_t bytes, bool to) noexcept {
    const std::span<char> touched = pages(address, bytes);
    if (touched.empty() || std::ranges::find(touched, to ? 1 : 0) != touched.end()) return kNotPages;
    std::ranges::fill(touched, to ? 1 : 0);
    to ? committed_bytes_ += bytes : committed_bytes_ -= bytes;
    return {};
  }

  BackendProperties properties_;
  std::atomic<std::size_t> bytes_in_{0};
  mutable std::mutex mutex_;                        // guards the members below
  std::map<std::byte*, std::vector<char>> ranges_;  // by first address: a flag per page, 1 when committed
  std::size_t committed_bytes_ = 0;                 // == kPage * flags that are set, <= kCapacity
};

class LedgerFactory : public BackendFactory {
 public:
  int count() override { return 1; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override { return std::make_unique<Ledger>(device); }
};

}  // namespace ledger

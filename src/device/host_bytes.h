// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <span>

#include "berth/base/result.h"
#include "berth/device/stream.h"

// Helpers for backends over host memory. Any thread.
namespace berth::internal::device {

// Repeats `pattern` over the target. REQUIRES: bytes is a multiple of the pattern's size.
inline void fill_host(void* target, std::size_t bytes, std::span<const std::byte> pattern) noexcept {
  if (bytes == 0) return;
  if (pattern.size() == 1) {
    std::memset(target, static_cast<int>(pattern[0]), bytes);
    return;
  }
  // Write one pattern, then double what is written.
  auto* const start = static_cast<std::byte*>(target);
  std::memcpy(start, pattern.data(), pattern.size());
  for (std::size_t done = pattern.size(); done < bytes;) {
    const std::size_t piece = done < bytes - done ? done : bytes - done;
    std::memcpy(start + done, start, piece);
    done += piece;
  }
}

// A copy of a pattern, for work that outlives the caller.
struct KeptPattern {
  explicit KeptPattern(std::span<const std::byte> pattern) noexcept : size(pattern.size()) {
    std::memcpy(bytes.data(), pattern.data(), size);
  }
  std::span<const std::byte> span() const noexcept { return {bytes.data(), size}; }

  std::array<std::byte, 16> bytes{};
  std::size_t size;
};

inline bool is_pattern(std::size_t bytes, std::span<const std::byte> pattern) noexcept {
  const std::size_t n = pattern.size();
  return n >= 1 && n <= 16 && (n & (n - 1)) == 0 && bytes % n == 0;
}

// Runs `work` synchronously, or enqueues it into the stream. A failure to enqueue is returned, not thrown.
template <class Work>
Status run_on(StreamRef stream, Work work) noexcept {
  try {
    if (stream)
      stream->enqueue(std::function<void()>(std::move(work)));
    else
      work();
    return {};
  } catch (const std::bad_alloc&) {
    return Failure{ErrorCode::out_of_memory, 0, "no heap to queue the work"};
  } catch (const Error& error) {
    return Failure{error.code(), 0, "the stream refused the work"};
  } catch (...) {  // synchronous work, or a third party's stream, may throw anything
    return Failure{ErrorCode::device_error, 0, "the work threw"};
  }
}

}  // namespace berth::internal::device

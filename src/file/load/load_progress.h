// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

#include "berth/file/load.h"

// Counts the bytes loaded, and calls the progress callback on the thread that called `load`, so that callbacks
// need not be thread-safe. `add` may be called from any thread.
namespace berth::internal::file::load {

class Progress {
 public:
  // The callback must outlive this object, and is called on the thread that constructs it.
  Progress(const ProgressCallback& callback, std::size_t total_bytes) noexcept : callback_(callback), total_(total_bytes) {}

  // More bytes are loaded. Throws Error: cancelled when the callback returns false, callback_failed when it
  // throws.
  void add(std::size_t bytes);
  // Everything is loaded; the callback can no longer cancel. Throws Error(callback_failed).
  void finish() const;

 private:
  bool tell(std::size_t done) const;  // returns the callback's answer

  const ProgressCallback& callback_;
  const std::size_t total_;
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<std::size_t> done_{0};  // relaxed: only a counter
};

}  // namespace berth::internal::file::load

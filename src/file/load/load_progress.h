// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

#include "berth/file/load.h"

// Counts what has arrived, and tells the caller of `load` on the caller's own thread: a callback need not be made for others.
namespace berth::internal::file::load {

class Progress {
 public:
  // Both must outlive it. The thread that makes it is the one that is called back.
  Progress(const ProgressCallback& callback, std::size_t total_bytes) noexcept : callback_(callback), total_(total_bytes) {}

  // More has arrived. Throws Error: cancelled when the callback says no, callback_failed when it throws.
  void add(std::size_t bytes);
  // Everything has; it is too late to say no. Throws Error(callback_failed).
  void finish() const;

 private:
  bool tell(std::size_t done) const;  // the callback's answer

  const ProgressCallback& callback_;
  const std::size_t total_;
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<std::size_t> done_{0};  // relaxed: a number to look at
};

}  // namespace berth::internal::file::load

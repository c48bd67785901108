// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/background_trim.h"

#include <algorithm>
#include <thread>

#include "os/file/shared_file.h"
#include "os/process/no_signals.h"

namespace berth::internal::memory {

namespace {

// Looks so often whether the pool is still there.
constexpr std::chrono::milliseconds kLook = std::chrono::seconds(1);

void keep_trimming(const std::weak_ptr<Allocator>& pool, std::chrono::milliseconds period) noexcept {
  for (auto waited = std::chrono::milliseconds::zero(); !pool.expired();) {
    const std::chrono::milliseconds rest = std::min(kLook, period - waited);
    os::sleep_us(static_cast<unsigned>(rest.count()) * 1000);
    waited += rest;
    if (waited < period) continue;
    if (const std::shared_ptr<Allocator> held = pool.lock()) held->trim_idle();
    waited = {};
  }
}

}  // namespace

void trim_in_background(const std::shared_ptr<Allocator>& pool, std::chrono::milliseconds period) {
  const os::NoSignals quiet;  // they are the program's
  std::thread([pool = std::weak_ptr(pool), period] { keep_trimming(pool, period); }).detach();
}

}  // namespace berth::internal::memory

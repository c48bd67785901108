// SPDX-License-Identifier: Apache-2.0
#include "os/inject.h"

#include <atomic>
#include <cerrno>

namespace berth::internal::os {

namespace {
std::atomic<Injector> g_injector{nullptr};
}  // namespace

void set_injector(Injector injector) noexcept { g_injector.store(injector, std::memory_order_release); }

bool must_fail(std::string_view call) noexcept {
  const Injector injector = g_injector.load(std::memory_order_acquire);
  if (injector == nullptr) return false;
  const int error = injector(call);
  if (error != 0) errno = error;
  return error != 0;
}

}  // namespace berth::internal::os

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Fault injection. Every system call in os/ asks here first whether it should fail, so that tests can make each
// one fail in turn without a preloaded library. Without an injector it costs one load before each system call.
namespace berth::internal::os {

// Returns the errno that the call named `call` must fail with, or 0 to let it through. Called from any thread.
using Injector = int (*)(std::string_view call) noexcept;

// Installs an injector, or removes it with nullptr. For tests.
void set_injector(Injector injector) noexcept;

// True when the call must fail; errno is then set.
bool must_fail(std::string_view call) noexcept;

}  // namespace berth::internal::os

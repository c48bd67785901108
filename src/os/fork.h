// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// What fork means for berth. `fork_generation()` is 0 in the first process and one more in each forked child, so that an object that
// remembers the generation it was made in can tell "mine" from "inherited" with one load. Processes made by vfork or a raw clone run
// no fork handlers: they must exec without touching berth.
namespace berth::os {

std::uint64_t fork_generation() noexcept;

// Installs the fork handlers; done by the first Mutex and by the first call of fork_generation(). Harmless to repeat.
void install_fork_handlers() noexcept;

}  // namespace berth::os

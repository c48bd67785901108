// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "berth/base/result.h"

// Signals that ask for something.
namespace berth::internal::os {

// "USR2", "SIGUSR2" or "12"; nothing for another word, and for signals that cannot be caught or mean that something is broken.
std::optional<int> signal_by_name(std::string_view name) noexcept;

// Calls `work` each time this process gets the signal, on a thread made for it. The handler itself does nothing but wake that thread, so that
// it does not matter what the signal interrupts. One signal for each process; a forked child is not served. `already_exists` when there is
// one, or the program handles this signal itself.
Status run_on_signal(int number, void (*work)() noexcept) noexcept;

}  // namespace berth::internal::os

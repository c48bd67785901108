// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "berth/base/result.h"

// Signals that request work from berth, such as a report. Any thread.
namespace berth::internal::os {

// "USR2", "SIGUSR2" or "12"; nothing for another word, and for signals that cannot be caught or that report a
// crash.
std::optional<int> signal_by_name(std::string_view name) noexcept;

// Calls `work` each time this process gets the signal, on a dedicated thread. The handler only wakes that
// thread, which is async-signal-safe. One signal per process; a forked child does not react to it. Fails with
// `already_exists` when a signal is set already, or the program handles this one itself.
Status run_on_signal(int number, void (*work)() noexcept) noexcept;

}  // namespace berth::internal::os

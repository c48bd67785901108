// SPDX-License-Identifier: Apache-2.0
#pragma once

// Optional shared libraries, loaded at run time. A library that was opened is never closed. Any thread.
namespace berth::internal::os {

void* open_library(const char* name) noexcept;                // nullptr: not found, or it does not load
void* find_symbol(void* library, const char* name) noexcept;  // nullptr: no such symbol

}  // namespace berth::internal::os

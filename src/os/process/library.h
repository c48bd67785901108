// SPDX-License-Identifier: Apache-2.0
#pragma once

// Libraries that a machine may have or not, looked for at run time. One that was opened stays until the process ends.
namespace berth::internal::os {

void* open_library(const char* name) noexcept;                // nullptr: it is not there, or does not load
void* find_symbol(void* library, const char* name) noexcept;  // nullptr: it has none of that name

}  // namespace berth::internal::os

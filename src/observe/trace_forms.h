// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "berth/observe/trace_reader.h"

// The trace formats that read_trace distinguishes, read within the thread's allowance. Any thread.
namespace berth::internal::observe {

bool is_binary_trace(std::string_view bytes) noexcept;
Trace read_binary_trace(std::string_view bytes, std::string_view name);
Trace read_text_trace(std::string_view text, std::string_view name);

}  // namespace berth::internal::observe

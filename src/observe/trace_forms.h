// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/observe/trace_reader.h"

// The forms of a trace that read_trace tells apart.
namespace berth {

RecordedTrace read_text_trace(std::string_view text, std::string_view name);

}  // namespace berth

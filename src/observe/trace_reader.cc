// SPDX-License-Identifier: Apache-2.0
#include "berth/observe/trace_reader.h"

#include "observe/trace_forms.h"

namespace berth {

RecordedTrace read_trace(std::string_view bytes, std::string_view name) { return read_text_trace(bytes, name); }

}  // namespace berth

// SPDX-License-Identifier: Apache-2.0
#include "berth/observe/trace_reader.h"

#include "observe/trace_forms.h"

namespace berth {

using namespace internal::observe;

Trace read_trace(std::string_view bytes, std::string_view name) {
  return is_binary_trace(bytes) ? read_binary_trace(bytes, name) : read_text_trace(bytes, name);
}

}  // namespace berth

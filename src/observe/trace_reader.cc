// SPDX-License-Identifier: Apache-2.0
#include "berth/observe/trace_reader.h"

#include "base/limited.h"
#include "observe/trace_forms.h"

namespace berth {

using namespace internal;
using namespace internal::observe;

Trace read_trace(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits,
                 [&] { return is_binary_trace(bytes) ? read_binary_trace(bytes, name) : read_text_trace(bytes, name); });
}

}  // namespace berth

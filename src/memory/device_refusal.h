// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>

#include "base/text.h"
#include "berth/base/result.h"
#include "berth/memory/out_of_memory.h"

// Who refused, for the report, when it was the device: with what the system said, because a limit of the process, a full
// file system and a lack of memory call for different help.
namespace berth::internal::memory {

inline void name_device(const Failure& failure, OutOfMemoryReport& report) {
  report.process_limited = failure.cause == Refusal::rlimit;
  report.refused_by = "the device";
  if (failure.os_error == 0) return;
  char reason[128];
  report.refused_by +=
      text::join(", ", std::string_view(failure.why), " (", std::string_view(strerror_r(failure.os_error, reason, sizeof reason)), ')');
}

}  // namespace berth::internal::memory

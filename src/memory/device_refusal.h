// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>

#include "base/text.h"
#include "berth/base/result.h"

// Who refused, for `OutOfMemoryReport::refused_by`, when it was the device: with what the system said, because a
// limit of the process, a full file system and a lack of memory call for different help.
namespace berth::internal::memory {

inline std::string refused_by_device(const Failure& failure) {
  if (failure.os_error == 0) return "the device";
  char reason[128];
  return text::join("the device, ", std::string_view(failure.why), " (",
                    std::string_view(strerror_r(failure.os_error, reason, sizeof reason)), ')');
}

}  // namespace berth::internal::memory

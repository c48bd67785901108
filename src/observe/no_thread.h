// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <system_error>

#include "base/text.h"
#include "berth/base/error.h"

// What observers say when the system refuses them a thread: limits of the process or its control group, a sandbox.
namespace berth::internal::observe {

[[noreturn]] inline void throw_no_thread(std::string_view asked, const std::system_error& refused) {
  throw DeviceError(ErrorCode::device_error,
                    {std::string(asked), text::join("no thread can be started: ", refused.code().message()),
                     "end threads that are not needed, or raise the limit of processes (ulimit -u) or of the control group"},
                    {{"os_error", refused.code().value()}});
}

}  // namespace berth::internal::observe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <string_view>

#include "berth/base/result.h"
#include "os/inject.h"
#include "os/process/no_cancel.h"

// Helpers for system calls on files: restarts, fault injection and errno. Any thread.
namespace berth::internal::os {

// Restarts the call on EINTR. `name` is what a test's injector sees.
template <class Call>
auto insist(std::string_view name, Call call) noexcept -> decltype(call()) {
  const NoCancel whole;
  for (;;) {
    const auto result = must_fail(name) ? -1 : call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// The limit of the process, past which a write would raise SIGXFSZ.
inline constexpr Failure kFilesAreLimited{ErrorCode::out_of_memory, EFBIG, "the process may not make files that long (ulimit -f)",
                                          Refusal::rlimit};

// errno as a failure with that code, whatever errno is.
inline Failure errno_failure(const char* why, ErrorCode code = ErrorCode::device_error) noexcept { return {code, errno, why}; }

// Maps errno to the failure of an operation on a user's file.
inline Failure file_failure(const char* why) noexcept {
  switch (errno) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG: return {ErrorCode::not_found, errno, why};
    case EACCES:
    case EPERM:
    case EROFS: return {ErrorCode::permission_denied, errno, why};
    case EMFILE:
    case ENFILE: return {ErrorCode::too_many_descriptors, errno, why};
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return {ErrorCode::out_of_memory, errno, why};
    case EISDIR:
    case ENXIO:
    case ENODEV: return {ErrorCode::unsupported, errno, why};
    default: return {ErrorCode::io_error, errno, why};
  }
}

}  // namespace berth::internal::os

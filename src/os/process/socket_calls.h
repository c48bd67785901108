// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

#include "berth/base/result.h"

// errno of a call on a socket as a failure. Any thread.
namespace berth::internal::os {

// `late` is what is wrong when the time was up, `why` for every other reason that has no text of its own.
inline Failure socket_failure(const char* why, const char* late) noexcept {
  switch (errno) {
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN: return {ErrorCode::peer_dead, errno, "the other end of the channel is closed"};
    case ETIMEDOUT: return {ErrorCode::timeout, 0, late};
    case EMSGSIZE: return {ErrorCode::limit_exceeded, errno, "the message is longer than the socket's buffer takes"};
    case EMFILE:
    case ENFILE: return {ErrorCode::too_many_descriptors, errno, why};
    case ETOOMANYREFS: return {ErrorCode::too_many_descriptors, errno, "too many descriptors that this user has sent are not received yet"};
    case EACCES:
    case EPERM: return {ErrorCode::permission_denied, errno, why};
    case ENOMEM:
    case ENOBUFS: return {ErrorCode::out_of_memory, errno, why};
    default: return {ErrorCode::device_error, errno, why};
  }
}
inline Failure socket_failure(const char* why) noexcept { return socket_failure(why, why); }

}  // namespace berth::internal::os

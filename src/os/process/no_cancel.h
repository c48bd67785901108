// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

// Disables the cancellation of the calling thread during its lifetime. Most blocking calls of the C library are
// cancellation points, at which pthread_cancel unwinds the thread: in the middle of our functions, many of
// which are noexcept, that ends the process. The thread is cancelled at the first such point after ours.
namespace berth::internal::os {

class NoCancel {
 public:
  NoCancel() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace berth::internal::os

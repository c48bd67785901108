// SPDX-License-Identifier: Apache-2.0
#include "os/process/thread_exit.h"

#include <pthread.h>

namespace berth::internal::os {

static_assert(sizeof(pthread_key_t) == sizeof(unsigned));

ThreadExit::ThreadExit(Leave leave) noexcept { has_key_ = pthread_key_create(&key_, leave) == 0; }

void ThreadExit::arm(void* argument) noexcept {
  if (has_key_) pthread_setspecific(key_, argument);
}

}  // namespace berth::internal::os

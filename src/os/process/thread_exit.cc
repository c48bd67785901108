// SPDX-License-Identifier: Apache-2.0
#include "os/process/thread_exit.h"

#include <pthread.h>

namespace berth::internal::os {

static_assert(sizeof(pthread_key_t) == sizeof(unsigned));

ThreadExit::ThreadExit(Leave leave) noexcept { has_key_ = pthread_key_create(&key_, leave) == 0; }

bool ThreadExit::arm(void* argument) noexcept { return has_key_ && pthread_setspecific(key_, argument) == 0; }

}  // namespace berth::internal::os

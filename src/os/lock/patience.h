// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// For a loop that waits for another thread to do a few instructions more: `for (Patience patience; !done();)
// patience.wait();`. It waits a little longer each time. After some yields it sleeps: a real-time thread that
// only yielded would keep the thread that it waits for from running.
namespace berth::internal::os {

class Patience {
 public:
  void wait() noexcept {
    constexpr int kYields = 20;
    if (++waits_ <= kYields) {
      sched_yield();
      return;
    }
    const timespec pause{0, 50'000};
    (void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, nullptr);  // unlike nanosleep, no cancellation point
  }

 private:
  int waits_ = 0;
};

}  // namespace berth::internal::os

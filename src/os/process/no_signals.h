// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

// Blocks all signals on the calling thread during its lifetime. Threads that are started meanwhile inherit the
// mask for good, so that the program's signals are delivered to the program's own threads.
namespace berth::internal::os {

class NoSignals {
 public:
  NoSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace berth::internal::os

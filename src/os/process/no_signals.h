// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

// While it lives no signal is delivered to this thread, nor to threads that it starts, for as long as those live: the program's own signals go to
// the program's own threads.
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

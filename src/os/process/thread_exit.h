// SPDX-License-Identifier: Apache-2.0
#pragma once

// Work at the end of a thread, later than any thread_local object: what those still do in their destructors is done by then. It does
// not run for threads that live when the process ends.
namespace berth::internal::os {

class ThreadExit {
 public:
  using Leave = void (*)(void* argument) noexcept;

  // Once, for as long as the process lives: it is never destroyed. Without a free key (a process has about a thousand) nothing is called.
  explicit ThreadExit(Leave leave) noexcept;

  // When the calling thread ends, leave(argument) is called there. It may be armed again, even by what runs at the end of the thread.
  void arm(void* argument) noexcept;

 private:
  unsigned key_ = 0;
  bool has_key_ = false;
};

}  // namespace berth::internal::os

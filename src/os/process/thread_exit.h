// SPDX-License-Identifier: Apache-2.0
#pragma once

// A callback at thread exit that runs after the destructors of all thread_local objects. It does not run for
// threads that are alive when the process exits.
namespace berth::internal::os {

class ThreadExit {
 public:
  using Leave = void (*)(void* argument) noexcept;

  // Takes a pthread key for the lifetime of the process and is never destroyed. When no key is free (a process
  // has about a thousand) nothing is ever called.
  explicit ThreadExit(Leave leave) noexcept;

  // Calls leave(argument) on the calling thread when that thread exits; false: nothing will be called. It may
  // be armed again, even during thread exit.
  bool arm(void* argument) noexcept;

 private:
  unsigned key_ = 0;
  bool has_key_ = false;
};

}  // namespace berth::internal::os

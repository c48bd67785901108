// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/record/tag.h"

// The tag of the thread's innermost scope, for the library's own use: reading it is one instruction, in the static block of thread-local
// memory, and it is read at every allocation.
namespace berth {

extern constinit thread_local Tag t_current_tag [[gnu::tls_model("initial-exec")]];

}  // namespace berth

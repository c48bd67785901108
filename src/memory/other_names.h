// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// What other systems call the strategies, and the environment variables that choose them there: for the error that
// answers one of those names. docs/coming-from.md has the same, with what differs. Any thread.
namespace berth::internal::memory {

// What to use here instead; empty for names that no other system has. The text is "Round", in any case, or a variable
// with or without its value: "MXNET_GPU_MEM_POOL_TYPE=Round".
std::string help_for_other_name(std::string_view text);

}  // namespace berth::internal::memory

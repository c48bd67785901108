// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// The stack of the calling thread, and the symbols of code addresses. Nothing here allocates. Any thread.
namespace berth::internal::os {

// Stores return addresses, innermost first, without this function's own frame and `skip` more. Returns how many
// it stored; the rest of `frames` is not touched.
std::size_t capture_stack(std::span<const void*> frames, std::size_t skip) noexcept;

struct CodeName {
  std::string_view module;    // file name without directory; empty when unknown. Both views are valid while the
                              // module is loaded
  std::string_view function;  // the dynamic symbol; often empty
  std::uintptr_t offset = 0;  // of the call instruction in the module, as addr2line takes it
};
CodeName name_of_caller(const void* return_address) noexcept;

}  // namespace berth::internal::os

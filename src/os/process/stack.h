// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// The stack of the calling thread, and what an address in code is called. Nothing here uses the heap.
namespace berth::internal::os {

// Return addresses, innermost first, without this function's own and `skip` more. Returns how many there are; the rest is not touched.
std::size_t capture_stack(std::span<const void*> frames, std::size_t skip) noexcept;

struct CodeName {
  std::string_view module;    // the file's name without its folder; empty when unknown. Valid while the module is loaded, as is the other
  std::string_view function;  // as the linker knows it; often empty
  std::uintptr_t offset = 0;  // in the module, of the call that returns to the address: what addr2line takes
};
CodeName name_of_caller(const void* return_address) noexcept;

}  // namespace berth::internal::os

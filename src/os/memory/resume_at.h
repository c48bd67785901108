// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <cstdint>

// Where a thread goes on when a signal handler returns: in `function`, which must not return, on the stack below the
// interrupted code. Leaving a handler by longjmp instead would skip what the kernel and handlers in between restore:
// the signal mask, the alternate stack. False on processors that this does not know.
namespace berth::internal::os {

#if defined(__aarch64__)
inline bool resume_at(ucontext_t& context, void (*function)(void*) noexcept, void* argument) noexcept {
  context.uc_mcontext.pc = reinterpret_cast<std::uintptr_t>(function);
  context.uc_mcontext.regs[0] = reinterpret_cast<std::uintptr_t>(argument);
  context.uc_mcontext.sp &= ~std::uintptr_t{15};
  return true;
}
#elif defined(__x86_64__)
inline bool resume_at(ucontext_t& context, void (*function)(void*) noexcept, void* argument) noexcept {
  constexpr greg_t kRedZone = 128;  // below the stack pointer
  constexpr greg_t kDirection = 1 << 10;
  greg_t* const registers = context.uc_mcontext.gregs;
  registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(function));
  registers[REG_RDI] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(argument));
  registers[REG_RSP] = ((registers[REG_RSP] - kRedZone) & ~greg_t{15}) - 8;  // as after a call
  registers[REG_EFL] &= ~kDirection;
  return true;
}
#else
inline bool resume_at(ucontext_t&, void (*)(void*) noexcept, void*) noexcept { return false; }
#endif

}  // namespace berth::internal::os

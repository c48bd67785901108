// SPDX-License-Identifier: Apache-2.0
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>

#include "berth/berth.h"

// One allocation, the first of its process. Prints the call stack of each mprotect: one line of addresses in this
// program, the innermost first. scripts/check-walk reads them.
extern "C" const char __executable_start;

extern "C" int mprotect(void* address, std::size_t bytes, int protection) noexcept {
  std::array<void*, 64> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 0; i < count; ++i) {
    // A frame has the address behind its call; the byte before it is in the call.
    const std::uintptr_t call = reinterpret_cast<std::uintptr_t>(frames[static_cast<std::size_t>(i)]) - 1;
    std::printf("%#zx ", static_cast<std::size_t>(call - reinterpret_cast<std::uintptr_t>(&__executable_start)));
  }
  std::printf("\n");
  return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}

int main() {
  const berth::Storage x = berth::empty({16}, berth::DType::f32, "cpu");
  return x.size_bytes() == 64 ? 0 : 1;
}

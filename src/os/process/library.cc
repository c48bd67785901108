// SPDX-License-Identifier: Apache-2.0
#include "os/process/library.h"

#include <dlfcn.h>

#include "os/process/no_cancel.h"

namespace berth::internal::os {

void* open_library(const char* name) noexcept {
  const NoCancel whole;
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
void* find_symbol(void* library, const char* name) noexcept { return dlsym(library, name); }

}  // namespace berth::internal::os

// SPDX-License-Identifier: Apache-2.0
#include "os/process/stack.h"

#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

namespace berth::internal::os {

namespace {

struct Walk {
  std::span<const void*> frames;
  std::size_t skip;
  std::size_t count = 0;
};

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* argument) noexcept {
  auto& walk = *static_cast<Walk*>(argument);
  const auto address = static_cast<std::uintptr_t>(_Unwind_GetIP(context));
  if (address == 0 || walk.count == walk.frames.size()) return _URC_END_OF_STACK;
  if (walk.skip > 0)
    --walk.skip;
  else
    walk.frames[walk.count++] = reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr): a code address
  return _URC_NO_REASON;
}

}  // namespace

// Not inlined: the first frame is this function's own, and is skipped.
[[gnu::noinline]] std::size_t capture_stack(std::span<const void*> frames, std::size_t skip) noexcept {
  Walk walk{frames, skip + 1};
  if (!frames.empty()) _Unwind_Backtrace(take_frame, &walk);
  return walk.count;
}

CodeName name_of_caller(const void* return_address) noexcept {
  // The address after a call may belong to another function.
  const char* const call = static_cast<const char*>(return_address) - 1;
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(call, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr || info.dli_fname == nullptr) return {};
  const std::string_view path = info.dli_fname;
  const std::size_t slash = path.find_last_of('/');
  return {.module = slash == std::string_view::npos ? path : path.substr(slash + 1),
          .function = info.dli_sname == nullptr ? std::string_view() : std::string_view(info.dli_sname),
          .offset = reinterpret_cast<std::uintptr_t>(call) - map->l_addr};
}

}  // namespace berth::internal::os

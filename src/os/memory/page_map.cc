// SPDX-License-Identifier: Apache-2.0
#include "os/memory/page_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "os/file/file_calls.h"
#include "os/memory/memory.h"

namespace berth::internal::os {

PageMap::PageMap(const char* path) noexcept
    : file_(insist("pagemap", [&] { return open(path, O_RDONLY | O_CLOEXEC); })), page_bytes_(os::page_bytes()) {}

std::size_t PageMap::read(std::uintptr_t begin, std::uintptr_t end) noexcept {
  if (!file_) return 0;
  const std::uintptr_t first = begin / page_bytes_;
  const std::size_t pages = std::min<std::size_t>(kEntries, (end - 1) / page_bytes_ - first + 1);
  const std::size_t length = pages * sizeof(entries_[0]);
  const auto offset = static_cast<off_t>(first * sizeof(entries_[0]));
  const ssize_t got = insist("pread", [&] { return pread(file_.number(), entries_, length, offset); });
  return got == static_cast<ssize_t>(length) ? pages : 0;
}

}  // namespace berth::internal::os

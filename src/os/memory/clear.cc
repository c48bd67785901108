// SPDX-License-Identifier: Apache-2.0
#include "os/memory/clear.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/file/file_calls.h"
#include "os/memory/page_map.h"

namespace berth::internal::os {

namespace {

// Asking takes 2 to 3 microseconds, in which so much is written.
constexpr std::size_t kLeastAsked = std::size_t{128} << 10;

void write_zeros(std::uintptr_t begin, std::uintptr_t end) noexcept { std::memset(reinterpret_cast<void*>(begin), 0, end - begin); }

}  // namespace

void clear(void* address, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = begin + bytes;
  if (bytes < kLeastAsked) return write_zeros(begin, end);
  // A page that is neither was never written: it will be filled with zeros when it is touched.
  write_zeros(PageMap().for_each_run(begin, end, PageMap::kPresent | PageMap::kSwapped, write_zeros), end);
}

void clear_mapped(void* address, std::size_t bytes, int descriptor, std::uint64_t offset) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uint64_t end = offset + bytes;
  const auto seek = [&](std::uint64_t from, int whence) {
    return insist("lseek", [&] { return lseek(descriptor, static_cast<off_t>(from), whence); });
  };
  for (std::uint64_t at = offset; at < end;) {
    const off_t data = seek(at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return;  // only holes follow
    const off_t hole = data < 0 ? -1 : seek(static_cast<std::uint64_t>(data), SEEK_HOLE);
    if (hole < 0) return write_zeros(begin + (at - offset), begin + bytes);
    const std::uint64_t from = std::min(end, static_cast<std::uint64_t>(data));
    const std::uint64_t to = std::min(end, static_cast<std::uint64_t>(hole));
    if (from < to) write_zeros(begin + (from - offset), begin + (to - offset));
    at = static_cast<std::uint64_t>(hole);
  }
}

}  // namespace berth::internal::os

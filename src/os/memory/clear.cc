// SPDX-License-Identifier: Apache-2.0
#include "os/memory/clear.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "os/file/descriptor.h"
#include "os/file/file_calls.h"
#include "os/memory/memory.h"

namespace berth::internal::os {

namespace {

// Asking takes 2 to 3 microseconds, in which so much is written.
constexpr std::size_t kLeastAsked = std::size_t{128} << 10;

// An entry of /proc/self/pagemap. A page that is neither was never written: it will be filled with zeros when it is
// touched. A page under migration, and a poisoned one, count as swapped.
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;
constexpr std::size_t kEntries = 1024;

void write_zeros(std::uintptr_t begin, std::uintptr_t end) noexcept { std::memset(reinterpret_cast<void*>(begin), 0, end - begin); }

}  // namespace

void clear(void* address, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = begin + bytes;
  const std::size_t page = page_bytes();
  // Opened each time: after a fork, a descriptor would still tell of the parent's pages.
  Descriptor map;
  if (bytes >= kLeastAsked) map = Descriptor(insist("pagemap", [] { return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC); }));
  if (!map) return write_zeros(begin, end);
  std::array<std::uint64_t, kEntries> entries;
  for (std::uintptr_t at = begin; at < end;) {
    const std::uintptr_t first = at / page;
    const std::size_t count = std::min<std::size_t>(kEntries, (end - 1) / page - first + 1);
    const std::size_t length = count * sizeof(std::uint64_t);
    const auto offset = static_cast<off_t>(first * sizeof(std::uint64_t));
    const ssize_t got = insist("pread", [&] { return pread(map.number(), entries.data(), length, offset); });
    if (got != static_cast<ssize_t>(length)) return write_zeros(at, end);
    for (std::size_t i = 0; i < count; ++i) {
      if ((entries[i] & (kPresent | kSwapped)) == 0) continue;
      const std::size_t run = i;
      while (i + 1 < count && (entries[i + 1] & (kPresent | kSwapped)) != 0) ++i;
      write_zeros(std::max(at, (first + run) * page), std::min(end, (first + i + 1) * page));
    }
    at = std::min(end, (first + count) * page);
  }
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

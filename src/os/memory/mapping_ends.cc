// SPDX-License-Identifier: Apache-2.0
#include "os/memory/mapping_ends.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <span>

#include "berth/base/checked.h"
#include "os/memory/memory.h"

namespace berth::internal::os {

namespace {

// Addresses where mappings may end, the latest of those that share an entry. All relaxed: what is read is only a length
// to ask for.
class EndHints {
 public:
  static constexpr std::size_t kMost = 32;  // of a range: five questions find the right one
  using Found = std::array<std::uintptr_t, kMost>;

  void add(std::uintptr_t address) noexcept { entry_of(address).store(address, std::memory_order_relaxed); }

  // Those inside (begin, end), in order; some of them if there are many.
  std::span<std::uintptr_t> within(std::uintptr_t begin, std::uintptr_t end, Found& found) const noexcept {
    std::size_t count = 0;
    for (const std::atomic<std::uintptr_t>& entry : entries_) {
      const std::uintptr_t address = entry.load(std::memory_order_relaxed);
      if (address > begin && address < end && count < found.size()) found[count++] = address;
    }
    std::sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
    return {found.data(), count};
  }

 private:
  static constexpr int kBits = 10;  // to look at all takes about as long as to ask the kernel once

  std::atomic<std::uintptr_t>& entry_of(std::uintptr_t address) noexcept {
    return entries_[(std::uint64_t{address / page_bytes()} * 0x9e3779b97f4a7c15ULL) >> (64 - kBits)];
  }

  std::array<std::atomic<std::uintptr_t>, std::size_t{1} << kBits> entries_ = {};
};
constinit EndHints g_hints;

// Whether the range is part of one mapping. Asks for one page more in place: the kernel refuses with EFAULT if
// the range is not, and otherwise because the page behind it is mapped.
bool is_one_mapping(void* address, std::size_t bytes) noexcept {
  if (mremap(address, bytes, bytes + page_bytes(), 0) == MAP_FAILED) return errno != EFAULT;
  munmap(static_cast<std::byte*>(address) + bytes, page_bytes());  // it was not
  return true;
}

}  // namespace

std::size_t mapping_bytes(void* address, std::size_t most) noexcept {
  if (is_one_mapping(address, most)) return most;
  const std::size_t page = page_bytes();
  std::size_t least = page;  // are part of one; `most` are not
  const auto ask = [&](std::size_t bytes) { (is_one_mapping(address, bytes) ? least : most) = bytes; };
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  EndHints::Found found;
  for (std::span<std::uintptr_t> hints = g_hints.within(begin + least, begin + most, found); !hints.empty();) {
    const std::size_t middle = hints.size() / 2;
    const std::size_t bytes = hints[middle] - begin;
    ask(bytes);
    hints = least == bytes ? hints.subspan(middle + 1) : hints.first(middle);
  }
  if (most - least > page) ask(least + page);  // mostly it ends just where the last hint said
  if (most - least == page) return least;
  while (most - least > page) ask(align_down(least + (most - least) / 2, page));
  g_hints.add(begin + least);
  return least;
}

void note_mapping_end(const void* address) noexcept { g_hints.add(reinterpret_cast<std::uintptr_t>(address)); }

}  // namespace berth::internal::os

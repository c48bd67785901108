// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/file/descriptor.h"

// /proc/self/pagemap: which pages of this process are in memory. One thread at a time.
namespace berth::internal::os {

class PageMap {
 public:
  static constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;  // or under migration, or poisoned

  // To be made each time: after a fork, an open one would still tell of the parent's pages. `path` is another file in
  // tests.
  explicit PageMap(const char* path = "/proc/self/pagemap") noexcept;

  // Calls visit(begin, end) for each run of bytes of [begin, end) whose pages have a bit of `states`, in order. Returns
  // the address up to which the kernel answered: `end`, unless it refused.
  template <class Visit>
  std::uintptr_t for_each_run(std::uintptr_t begin, std::uintptr_t end, std::uint64_t states, Visit visit) noexcept {
    while (begin < end) {
      const std::size_t pages = read(begin, end);
      if (pages == 0) break;
      const std::uintptr_t first = begin / page_bytes_;
      const std::uintptr_t known = first + pages > (end - 1) / page_bytes_ ? end : (first + pages) * page_bytes_;
      for (std::size_t i = 0; i < pages; ++i) {
        if ((entries_[i] & states) == 0) continue;
        const std::size_t run = i;
        while (i + 1 < pages && (entries_[i + 1] & states) != 0) ++i;
        const std::uintptr_t from = (first + run) * page_bytes_;
        const std::uintptr_t to = (first + i + 1) * page_bytes_;
        visit(from < begin ? begin : from, to > known ? known : to);
      }
      begin = known;
    }
    return begin;
  }

 private:
  static constexpr std::size_t kEntries = 1024;  // read at once

  // Reads the entries of pages from that of `begin` on, at most up to that of the last byte; their number, 0 when the
  // kernel refuses.
  std::size_t read(std::uintptr_t begin, std::uintptr_t end) noexcept;

  Descriptor file_;
  std::size_t page_bytes_;
  std::uint64_t entries_[kEntries];
};

}  // namespace berth::internal::os

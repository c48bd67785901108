// SPDX-License-Identifier: Apache-2.0
#include "os/memory/memory.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "os/inject.h"
#include "os/memory/mapping_ends.h"
#include "os/memory/mappings.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

namespace berth::internal::os {

namespace {

Failure system_failure(const char* why) noexcept {
  const bool memory = errno == ENOMEM || errno == EAGAIN;
  return {memory ? ErrorCode::out_of_memory : ErrorCode::device_error, errno, why};
}

// The same, where a limit of the process may be the reason: more memory would not help then.
Failure limited_failure(const char* why, int limit, const char* why_with_limit) noexcept {
  const int reason = errno;
  rlimit now{};
  const bool limited = reason == ENOMEM && getrlimit(static_cast<__rlimit_resource_t>(limit), &now) == 0 && now.rlim_cur != RLIM_INFINITY;
  errno = reason;
  Failure failure = system_failure(limited ? why_with_limit : why);
  if (limited) failure.cause = Refusal::rlimit;
  return failure;
}

std::byte* at(void* address, std::size_t offset) noexcept { return static_cast<std::byte*>(address) + offset; }

bool is_overcommit_strict() noexcept {
  static const bool strict = [] {
    int mode = 0;
    if (FILE* const file = std::fopen("/proc/sys/vm/overcommit_memory", "re")) {
      if (std::fscanf(file, "%d", &mode) != 1) mode = 0;
      std::fclose(file);
    }
    return mode == 2;
  }();
  return strict;
}

constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// ---- addresses that were lost

// Reserved addresses that another's mapping may have taken (see below): they are never touched again. There are
// none in nearly every process; when there are several, pages are no longer moved.
class LostAddresses {
 public:
  bool overlap(const void* address, std::size_t bytes) const noexcept {
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count > kRoom) return true;  // it is not known which
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    for (std::uint32_t i = 0; i < count; ++i) {
      // acquire: pairs with add. A span that is being added is its thread's concern until then.
      const std::uintptr_t end = spans_[i].end.load(std::memory_order_acquire);
      if (begin < end && spans_[i].begin.load(std::memory_order_relaxed) < begin + bytes) return true;
    }
    return false;
  }
  bool are_many() const noexcept { return count_.load(std::memory_order_relaxed) >= kMany; }

  // Calls `visit` with each run of the range that is not lost, in order; with none when it is not known which are.
  template <class Visit>
  void for_each_kept(std::uintptr_t begin, std::uintptr_t end, Visit visit) const noexcept {
    if (count_.load(std::memory_order_relaxed) > kRoom) return;
    while (begin < end) {
      const auto [lost_begin, lost_end] = first_in(begin, end);
      if (lost_begin > begin) visit(begin, lost_begin - begin);
      begin = lost_end;
    }
  }

  void add(const void* address, std::size_t bytes) noexcept {
    const std::uint32_t index = count_.fetch_add(1, std::memory_order_relaxed);
    if (index >= kRoom) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    spans_[index].begin.store(begin, std::memory_order_relaxed);
    spans_[index].end.store(begin + bytes, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t kMany = 8;
  static constexpr std::uint32_t kRoom = 64;  // for threads that move pages while the eighth span is added
  struct Span {
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};
  };
  struct Part {
    std::uintptr_t begin;
    std::uintptr_t end;
  };

  // The first lost span that overlaps the range, without what is before it; an empty one at its end if there is none.
  Part first_in(std::uintptr_t begin, std::uintptr_t end) const noexcept {
    Part first{end, end};
    const std::uint32_t count = std::min(count_.load(std::memory_order_relaxed), kRoom);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uintptr_t lost_end = spans_[i].end.load(std::memory_order_acquire);  // pairs with add
      const std::uintptr_t lost_begin = std::max(spans_[i].begin.load(std::memory_order_relaxed), begin);
      if (lost_end > begin && lost_begin < first.begin) first = {lost_begin, lost_end};
    }
    return first;
  }

  std::atomic<std::uint32_t> count_{0};
  std::array<Span, kRoom> spans_;
};
constinit LostAddresses g_lost;

constexpr Failure kLost{ErrorCode::out_of_memory, EEXIST, "another mapping may have these addresses, since mremap failed"};

// ---- moving

constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED;

// mremap first unmaps its target, and may fail then: before Linux 6.17 always where the source is more than one
// mapping, and on every kernel when it runs out of memory. Another thread's mapping may land in the hole. So a
// source is moved one mapping at a time, and a hole is reserved again, but never over what is there by then. A
// sandbox that refuses the call (EPERM, ENOSYS), a sealed mapping (EPERM) and a wait that ends (EINTR) come first.

// Whether the process has nearly all the mappings that it may have: mremap then fails before it unmaps
// anything.
bool is_near_most_mappings() noexcept {
  constexpr std::size_t kPages = 17;  // the kernel keeps a distance of five
  const std::size_t page = page_bytes();
  void* const scratch = mmap(nullptr, kPages * page, PROT_NONE, kReserve, -1, 0);
  if (scratch == MAP_FAILED) return true;
  bool near = false;
  for (std::size_t i = 1; i < kPages; i += 2)
    near = mprotect(at(scratch, i * page), page, PROT_READ) != 0 || near;  // which no other limit counts
  munmap(scratch, kPages * page);
  return near;
}

// Reserves what is unmapped of a range, and returns how many bytes that was. Never maps over what is there.
std::size_t reserve_holes(void* address, std::size_t bytes) noexcept {
  void* const got = mmap(address, bytes, PROT_NONE, kReserve | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == address) return bytes;
  if (got != MAP_FAILED) munmap(got, bytes);  // before Linux 4.17 the address is a hint
  if (bytes == page_bytes()) return 0;
  const std::size_t half = align_down(bytes / 2, page_bytes());
  return reserve_holes(address, half) + reserve_holes(at(address, half), bytes - half);
}

// Takes back a range that a failed mremap may have unmapped: all of it, or none because the kernel failed
// before that. Otherwise part of it is another's by now, or may be, and the range is lost.
bool take_back(void* address, std::size_t bytes) noexcept {
  const std::size_t holes = reserve_holes(address, bytes);
  if (holes == bytes || (holes == 0 && is_near_most_mappings())) return true;
  g_lost.add(address, bytes);
  return false;
}

// Moves one mapping. After a failure, the target is reserved as before, or it is lost.
enum class Moved : std::uint8_t { yes, no, target_lost };
Moved move_mapping(void* from, void* to, std::size_t bytes) noexcept {
  if (must_fail("mremap")) return Moved::no;
  if (mremap(from, bytes, bytes, kMove | MREMAP_DONTUNMAP, to) != MAP_FAILED) return Moved::yes;
  const int reason = errno;
  const bool ours = reason == EPERM || reason == ENOSYS || reason == EINTR || take_back(to, bytes);
  errno = reason;
  return ours ? Moved::no : Moved::target_lost;
}

// Moves the first `bytes` of `to` back. The mappings at `from` are still there, and empty.
bool move_back(void* from, void* to, std::size_t bytes) noexcept {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = mapping_bytes(at(to, done), bytes - done);
    const bool moved = mremap(at(to, done), piece, piece, kMove | MREMAP_DONTUNMAP, at(from, done)) != MAP_FAILED ||
                       // At the limits of the process only this works; the addresses are unmapped for an
                       // instant.
                       (mremap(at(to, done), piece, piece, kMove, at(from, done)) != MAP_FAILED && take_back(at(to, done), piece));
    if (!moved) return false;
    done += piece;
  }
  return decommit(to, bytes).ok();
}

}  // namespace

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t huge_page_bytes() noexcept {
  static const std::size_t bytes = [] {
    std::size_t found = 0;
    char mode[64] = {};
    if (FILE* file = std::fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re")) {
      if (std::fgets(mode, sizeof mode, file) == nullptr) mode[0] = '\0';
      std::fclose(file);
    }
    if (std::strstr(mode, "[madvise]") == nullptr && std::strstr(mode, "[always]") == nullptr) return found;
    if (FILE* file = std::fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re")) {
      unsigned long long size = 0;
      if (std::fscanf(file, "%llu", &size) == 1 && is_power_of_two(size)) found = size;
      std::fclose(file);
    }
    return found;
  }();
  return bytes;
}

// Initialized when the library is loaded: a fork during the initialization of a static would leave the child
// waiting for ever.
[[maybe_unused]] const std::size_t g_known_at_load = page_bytes() + huge_page_bytes() + (is_overcommit_strict() ? 1 : 0);

Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t page = page_bytes();
  const auto length = try_align_up(bytes, page);
  // Over-allocate and unmap both ends: the kernel aligns to pages only.
  const auto longer = length && alignment > page ? try_add(*length, alignment - page) : length;
  if (bytes == 0 || !longer) return Failure{ErrorCode::out_of_memory, ENOMEM, "a range has at least a byte, and fits in the address space"};
  void* const start = must_fail("mmap") ? MAP_FAILED : mmap(nullptr, *longer, PROT_NONE, kReserve, -1, 0);
  if (start == MAP_FAILED)
    return limited_failure("mmap refused the address range", RLIMIT_AS,
                           "mmap refused the address range, and the process's addresses are limited: see ulimit -v");
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::size_t front = *try_align_up(address, alignment) - address;
  const std::size_t back = *longer - *length - front;
  if (front > 0) munmap(start, front);
  if (back > 0) munmap(at(start, front + *length), back);
  return static_cast<void*>(at(start, front));
}

Status commit(void* address, std::size_t bytes) noexcept {
  if (g_lost.overlap(address, bytes)) return kLost;
  if (must_fail("mprotect") || mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0)
    return limited_failure("mprotect refused to commit memory", RLIMIT_DATA,
                           "mprotect refused to commit memory, and the process's data is limited: see ulimit -d");
  note_cut();
  note_mapping_end(address);
  note_mapping_end(at(address, bytes));
  return {};
}

Status decommit(void* address, std::size_t bytes) noexcept {
  if (g_lost.overlap(address, bytes)) return kLost;
  if (are_mappings_scarce() && discard(address, bytes)) return {};
  return close_off(address, bytes);
}

Status close_off(void* address, std::size_t bytes) noexcept {
  if (g_lost.overlap(address, bytes)) return kLost;
  // A fresh mapping in place drops the pages and their protection in one call, and resets earlier madvise
  // hints.
  if (must_fail("mmap_fixed") || mmap(address, bytes, PROT_NONE, kReserve | MAP_FIXED, -1, 0) == MAP_FAILED)
    return system_failure("mmap refused to decommit memory");
  note_cut();
  return {};
}

// The second where the process has locked its memory (Linux 5.18).
bool discard(void* address, std::size_t bytes) noexcept {
  if (must_fail("madvise") || g_lost.overlap(address, bytes)) return false;
  return madvise(address, bytes, MADV_DONTNEED) == 0 || madvise(address, bytes, MADV_DONTNEED_LOCKED) == 0;
}

bool is_writing_limited() noexcept {
  rlimit data{};
  return is_overcommit_strict() || (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY);
}

Status release(void* address, std::size_t bytes) noexcept {
  if (g_lost.overlap(address, bytes)) {
    // Around them: this is rare, and what is left is only addresses.
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    g_lost.for_each_kept(begin, begin + *try_align_up(bytes, page_bytes()),
                         [&](std::uintptr_t kept, std::size_t length) { munmap(at(address, kept - begin), length); });
    return {};
  }
  if (must_fail("munmap") || munmap(address, *try_align_up(bytes, page_bytes())) != 0)
    return system_failure("munmap refused to release the range");
  return {};
}

Status move(void* from, void* to, std::size_t bytes, const MappingLengths& found) noexcept {
  if (g_lost.are_many() || g_lost.overlap(from, bytes) || g_lost.overlap(to, bytes)) return kLost;
  if (are_mappings_scarce()) return Failure{ErrorCode::out_of_memory, ENOMEM, "the process has too many mappings for pages to be moved"};
  note_cut();
  for (std::size_t done = 0, count = 0; done < bytes; ++count) {
    const std::size_t piece = count < found.count ? found.bytes[count] : mapping_bytes(at(from, done), bytes - done);
    const Moved moved = move_mapping(at(from, done), at(to, done), piece);
    if (moved == Moved::yes) {
      note_mapping_end(at(to, done));
      done += piece;
      continue;
    }
    const Failure failure = system_failure("mremap refused to move pages");
    const bool undone = done == 0 || move_back(from, to, done);
    if (undone) return moved == Moved::target_lost ? kLost : failure;
    return Failure{ErrorCode::device_lost, failure.os_error, "mremap failed half way and could not be undone"};
  }
  note_mapping_end(at(to, bytes));
  // The pages have already left `from`. If the kernel refuses to change its protection as well, no memory is
  // held there.
  (void)decommit(from, bytes).ok();
  return {};
}

bool pays_to_move(void* address, std::size_t bytes, MappingLengths& found) noexcept {
  // To find and move a mapping of 1 MiB takes 44 µs on a Neoverse N1, to touch as much fresh memory first 50 µs in
  // huge pages, and several times that in others.
  constexpr std::size_t kLeastMoved = 1_MiB;
  std::size_t mappings = 1 + bytes / kLeastMoved;
  std::size_t seen = 0;
  found.count = 0;
  for (; seen < bytes && mappings > 0; --mappings) {
    const std::size_t piece = mapping_bytes(at(address, seen), bytes - seen);
    if (found.count < found.bytes.size()) found.bytes[found.count++] = piece;
    seen += piece;
  }
  return seen == bytes;
}

void prefer_huge_pages(void* address, std::size_t bytes) noexcept {
  if (huge_page_bytes() == 0 || are_mappings_scarce()) return;
  (void)madvise(address, bytes, MADV_HUGEPAGE);
}

Status bind_to_node(void* address, std::size_t bytes, int node) noexcept {
  constexpr int kBits = sizeof(unsigned long) * CHAR_BIT;
  unsigned long mask[16] = {};
  if (node < 0 || node >= 16 * kBits) return Failure{ErrorCode::invalid_argument, EINVAL, "no such NUMA node"};
  mask[node / kBits] = 1UL << (node % kBits);
  if (must_fail("mbind") || syscall(SYS_mbind, address, bytes, MPOL_PREFERRED, mask, 16UL * kBits, 0U) != 0) {
    return system_failure("mbind refused the NUMA node");
  }
  return {};
}

}  // namespace berth::internal::os

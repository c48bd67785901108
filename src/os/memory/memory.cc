// SPDX-License-Identifier: Apache-2.0
#include "os/memory/memory.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "berth/base/checked.h"
#include "os/inject.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace berth::internal::os {

namespace {

Failure system_failure(const char* why) noexcept {
  const bool memory = errno == ENOMEM || errno == EAGAIN;
  return {memory ? ErrorCode::out_of_memory : ErrorCode::device_error, errno, why};
}

std::byte* at(void* address, std::size_t offset) noexcept { return static_cast<std::byte*>(address) + offset; }

constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Reserves addresses that a failed mremap has unmapped. If another thread's mapping has landed there in
// between, it is not touched.
void reserve_again(void* address, std::size_t bytes) noexcept {
  void* const got = mmap(address, bytes, PROT_NONE, kReserve | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED && got != address) munmap(got, bytes);  // before Linux 4.17 the address is a hint
}

// Before Linux 6.17 one mremap must stay within one VMA, and adjacent compatible VMAs are not always merged; so
// on EFAULT the range is halved, down to single pages.
bool move_pieces(void* from, void* to, std::size_t bytes) noexcept {
  constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (must_fail("mremap")) return false;
  if (mremap(from, bytes, bytes, kMove, to) != MAP_FAILED) return true;
  if (errno != EFAULT || bytes == page_bytes()) return false;
  reserve_again(to, bytes);
  const std::size_t half = align_down(bytes / 2, page_bytes());
  return move_pieces(from, to, half) && move_pieces(at(from, half), at(to, half), bytes - half);
}

enum class Probe { readable, unreadable, unknown };

// Makes the kernel read eight bytes from the address and then reject the call: every sandbox allows this call,
// and it changes nothing.
Probe probe(const void* address) noexcept {
  constexpr long kNoSuchOperation = ~0L;
  if (syscall(SYS_rt_sigprocmask, kNoSuchOperation, address, nullptr, 8UL) == 0) return Probe::unknown;
  return errno == EINVAL ? Probe::readable : errno == EFAULT ? Probe::unreadable : Probe::unknown;
}

// Rolls back a move that failed half way: the pages that did arrive, which are the readable ones, are moved
// back one by one.
bool move_back(void* from, void* to, std::size_t bytes) noexcept {
  const std::size_t page = page_bytes();
  bool all = true;
  for (std::size_t offset = 0; offset < bytes; offset += page) {
    const Probe arrived = probe(at(to, offset));
    all = all && arrived != Probe::unknown;
    if (arrived == Probe::readable) {
      // Not MREMAP_DONTUNMAP: this must work when the process is at its limits.
      all = mremap(at(to, offset), page, page, MREMAP_MAYMOVE | MREMAP_FIXED, at(from, offset)) != MAP_FAILED && all;
    }
    reserve_again(at(to, offset), page);
  }
  return all;
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
[[maybe_unused]] const std::size_t g_known_at_load = page_bytes() + huge_page_bytes();

Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t page = page_bytes();
  const auto length = try_align_up(bytes, page);
  // Over-allocate and unmap both ends: the kernel aligns to pages only.
  const auto longer = length && alignment > page ? try_add(*length, alignment - page) : length;
  if (bytes == 0 || !longer) return Failure{ErrorCode::out_of_memory, ENOMEM, "a range has at least a byte, and fits in the address space"};
  void* const start = must_fail("mmap") ? MAP_FAILED : mmap(nullptr, *longer, PROT_NONE, kReserve, -1, 0);
  if (start == MAP_FAILED) return system_failure("mmap refused the address range");
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::size_t front = *try_align_up(address, alignment) - address;
  const std::size_t back = *longer - *length - front;
  if (front > 0) munmap(start, front);
  if (back > 0) munmap(at(start, front + *length), back);
  return static_cast<void*>(at(start, front));
}

Status commit(void* address, std::size_t bytes) noexcept {
  if (must_fail("mprotect") || mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0)
    return system_failure("mprotect refused to commit memory");
  return {};
}

Status decommit(void* address, std::size_t bytes) noexcept {
  // A fresh mapping in place drops the pages and their protection in one call, and resets earlier madvise
  // hints.
  if (must_fail("mmap_fixed") || mmap(address, bytes, PROT_NONE, kReserve | MAP_FIXED, -1, 0) == MAP_FAILED)
    return system_failure("mmap refused to decommit memory");
  return {};
}

Status release(void* address, std::size_t bytes) noexcept {
  if (must_fail("munmap") || munmap(address, *try_align_up(bytes, page_bytes())) != 0)
    return system_failure("munmap refused to release the range");
  return {};
}

Status move(void* from, void* to, std::size_t bytes) noexcept {
  if (!move_pieces(from, to, bytes)) {
    const Failure failure = system_failure("mremap refused to move pages");
    if (move_back(from, to, bytes)) return failure;
    return Failure{ErrorCode::device_lost, failure.os_error, "mremap failed half way and could not be undone"};
  }
  // The pages have already left `from`. If the kernel refuses to change its protection as well, no memory is
  // held there.
  (void)decommit(from, bytes).ok();
  return {};
}

void prefer_huge_pages(void* address, std::size_t bytes) noexcept {
  if (huge_page_bytes() != 0) (void)madvise(address, bytes, MADV_HUGEPAGE);
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

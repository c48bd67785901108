// SPDX-License-Identifier: Apache-2.0
#include "device/pinned/pinned_memory.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "berth/base/checked.h"
#include "os/memory/memory.h"
#include "os/process/no_cancel.h"
#include "os/system.h"

namespace berth::internal::device {

namespace {

constexpr std::size_t kMostThreads = 8;                     // more are slower: they contend in the kernel
constexpr std::size_t kLeastShare = std::size_t{16} << 20;  // the least that pays for a thread

void* at(std::uintptr_t address) noexcept { return reinterpret_cast<void*>(address); }

void touch(std::byte* begin, std::size_t bytes) noexcept {
  const std::size_t page = os::page_bytes();
  for (std::size_t offset = 0; offset < bytes; offset += page) *static_cast<volatile std::byte*>(begin + offset) = std::byte{0};
}

}  // namespace

void touch_pages(void* address, std::size_t bytes) noexcept {
  const os::NoCancel whole;  // joins threads
  auto* const begin = static_cast<std::byte*>(address);
  const auto processors = static_cast<std::size_t>(std::max(os::cpu_count(), 1));
  const std::size_t threads = std::clamp<std::size_t>(bytes / kLeastShare, 1, std::min(kMostThreads, processors));
  const std::size_t share = std::min(bytes, *try_align_up(bytes / threads + 1, PinnedMemory::kUnit));
  std::size_t left = share;  // the first share is this thread's
  std::vector<std::jthread> others;
  try {
    others.reserve(threads);
    for (; left < bytes; left += std::min(share, bytes - left)) others.emplace_back(touch, begin + left, std::min(share, bytes - left));
  } catch (const std::system_error&) {  // no more threads: this one does the rest
  } catch (const std::bad_alloc&) {
  }
  touch(begin, share);
  touch(begin + left, bytes - left);
}

Result<PieceMemory::Addresses> PinnedMemory::reserve_addresses(std::size_t bytes, std::size_t alignment) noexcept {
  const Result<void*> range = pages_.CpuBackend::reserve(bytes, alignment);
  if (!range) return range.failure();
  return Addresses{reinterpret_cast<std::uintptr_t>(*range), bytes};
}

void PinnedMemory::give_addresses_back(const Addresses& addresses) noexcept {
  (void)pages_.CpuBackend::release(at(addresses.first), addresses.bytes).ok();  // no way to report it
}

Status PinnedMemory::make_piece(Piece& piece) noexcept {
  void* const address = at(piece.address);
  if (const Status committed = pages_.CpuBackend::commit(address, piece.bytes); !committed) return committed;
  touch_pages(address, piece.bytes);
  const Status locked = locks_.lock(address, piece.bytes);
  if (!locked) (void)pages_.CpuBackend::decommit(address, piece.bytes).ok();
  return locked;
}

Status PinnedMemory::drop_piece(const Piece& piece) noexcept {
  // A failure is ignored: when the device is lost, its locks are gone too.
  (void)locks_.unlock(at(piece.address)).ok();
  return pages_.CpuBackend::decommit(at(piece.address), piece.bytes);
}

}  // namespace berth::internal::device

// SPDX-License-Identifier: Apache-2.0
#include "memory/space/address_range.h"

#include <algorithm>
#include <new>

#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "memory/cache/size_classes.h"
#include "memory/space/page_span.h"
#include "os/process/fork.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kRangePerMemory = 4;      // addresses, for each byte the device has
constexpr std::size_t kLeastRange = 64_MiB;     // fewer addresses than this are not worth a pool
constexpr std::size_t kMostRange = 1ULL << 46;  // offsets must fit in 48 bits
constexpr std::size_t kSlabsShare = 4;          // 1 / kSlabsShare of the range is for slabs

constexpr std::size_t least_range(std::size_t page) noexcept { return std::max(kLeastRange, kSlabsShare * page); }

std::size_t wanted_range(const Backend& backend, std::size_t page) noexcept {
  std::size_t total = 0;
  try {
    total = backend.memory_info().total_bytes;
  } catch (const std::bad_alloc&) {
  }
  return round_up(std::clamp(total, kLeastRange, kMostRange / kRangePerMemory) * kRangePerMemory, page);
}

// Address space may be limited too: halves the request until it succeeds.
Result<void*> reserve_most(Backend& backend, std::size_t page, std::size_t& size) noexcept {
  const std::size_t alignment = std::max(page, kSlabGrain);  // the table of slabs is indexed by offset
  Result<void*> range = backend.reserve(size, alignment);
  while (!range && size / 2 >= least_range(page)) {
    size = round_up(size / 2, page);
    range = backend.reserve(size, alignment);
  }
  return range;
}

}  // namespace

void OpeningTurn::take(os::Mutex& mutex) noexcept {
  const std::uint64_t process = os::fork_generation() + 1;
  while (owner_ == process) ended_.wait(mutex);
  owner_ = process;
}

void OpeningTurn::end() noexcept {
  owner_ = 0;
  ended_.notify_all();
}

Result<AddressRange> reserve_addresses(Backend& backend, std::size_t page_bytes) noexcept {
  const std::size_t wanted = wanted_range(backend, page_bytes);
  std::size_t size = wanted;
  Result<void*> range = reserve_most(backend, page_bytes, size);
  if (range && size < wanted && size / 2 >= least_range(page_bytes)) {
    // Addresses are not for one pool alone: half is left for the next.
    (void)backend.release(*range, size).ok();
    size = round_up(size / 2, page_bytes);
    range = reserve_most(backend, page_bytes, size);
  }
  if (!range) return range.failure();
  return AddressRange{static_cast<std::byte*>(*range), size, align_down(size / kSlabsShare, page_bytes)};
}

}  // namespace berth::internal::memory

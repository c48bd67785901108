// SPDX-License-Identifier: Apache-2.0
#include "memory/space/address_range.h"

#include <algorithm>
#include <new>

#include "base/sanitizers.h"
#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "memory/cache/size_classes.h"
#include "memory/space/page_span.h"
#include "os/process/fork.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kRangePerMemory = 4;      // addresses, for each byte that it may hold
constexpr std::size_t kLeastRange = 64_MiB;     // fewer addresses than this are not worth a pool
constexpr std::size_t kMostRange = 1ULL << 46;  // offsets must fit in 48 bits
constexpr std::size_t kSlabsShare = 4;          // 1 / kSlabsShare of the range is for slabs

// Where addresses are limited, half of what there is must be usable, by large blocks in their part of the range
// and by small ones, whose table takes a quarter more. The rest is for other pools, stacks and the heap.
// The thread sanitizer leaves few addresses, and its own heap needs them too.
constexpr std::size_t kScarceSixteenths = kThreadSanitizer ? 4 : 9;
constexpr std::size_t kScarceSlabsShare = 16;

constexpr std::size_t least_range(std::size_t page) noexcept { return std::max(kLeastRange, kScarceSlabsShare * page); }

// Addresses cost nothing: where a sandbox hides how much memory there is, enough of them for any machine but the largest.
constexpr std::size_t kUnknownMemory = 1_TiB;

std::size_t wanted_range(const Backend& backend, std::size_t page, std::size_t limit) noexcept {
  std::size_t total = 0;
  try {
    total = backend.memory_info().total_bytes;
  } catch (const std::bad_alloc&) {
  }
  if (total == 0) total = kUnknownMemory;
  return round_up(std::clamp(std::min(total, limit), kLeastRange, kMostRange / kRangePerMemory) * kRangePerMemory, page);
}

Result<void*> try_reserve(Backend& backend, std::size_t page, std::size_t bytes) noexcept {
  return backend.reserve(bytes, std::max(page, kSlabGrain));  // the map of blocks is indexed by offset
}

// How many addresses can be reserved at once, of fewer than `too_many`: found by trying, nearly. 0: too few
// for a pool.
std::size_t find_most(Backend& backend, std::size_t page, std::size_t too_many) noexcept {
  const auto fits = [&](std::size_t bytes) {
    const Result<void*> range = try_reserve(backend, page, bytes);
    if (range) (void)backend.release(*range, bytes).ok();
    return range.ok();
  };
  std::size_t most = round_up(too_many / 2, page);
  while (!fits(most)) {
    if (most / 2 < least_range(page)) return 0;
    most = round_up(most / 2, page);
  }
  for (std::size_t step = most / 2; step >= most / 64 && step >= page; step /= 2) {
    if (const std::size_t more = align_down(most + step, page); fits(more)) most = more;
  }
  return most;
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

Result<AddressRange> reserve_addresses(Backend& backend, std::size_t page_bytes, std::size_t limit_bytes) noexcept {
  const std::size_t wanted = wanted_range(backend, page_bytes, limit_bytes);
  const Result<void*> all = try_reserve(backend, page_bytes, wanted);
  if (all)
    return AddressRange{static_cast<std::byte*>(*all), wanted, align_down(wanted / kSlabsShare, page_bytes), wanted / kRangePerMemory};
  const std::size_t most = find_most(backend, page_bytes, wanted);
  if (most == 0) return all.failure();
  const std::size_t size = std::max(round_up(most / 16 * kScarceSixteenths, page_bytes), least_range(page_bytes));
  const Result<void*> range = try_reserve(backend, page_bytes, size);
  if (!range) return range.failure();
  return AddressRange{static_cast<std::byte*>(*range), size, align_down(size / kScarceSlabsShare, page_bytes), size};
}

}  // namespace berth::internal::memory
